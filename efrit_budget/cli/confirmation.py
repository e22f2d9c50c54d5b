"""Ask the person at the terminal."""

import sys

from efrit_budget.cli.output import printable


def can_ask() -> bool:
    """Return whether a person is at the terminal to answer."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def confirmed(question: str) -> bool:
    """Ask; anything but yes, and the end of input, is no."""
    print(f"{printable(question)} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in {"y", "yes"}
