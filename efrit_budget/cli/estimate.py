"""`efrit-budget estimate`: print how many tokens files cost."""

import argparse
import os
import sys
from pathlib import Path
from typing import Final

from efrit_budget.cli.arguments import add_json_flag
from efrit_budget.cli.output import complain, print_json, print_table

NAME = "estimate"
HELP = "Estimate the tokens of files."
EXAMPLES = """  efrit-budget estimate prompt.md
  efrit-budget estimate src/*.py --json
  git diff | efrit-budget estimate -
"""
STDIN: Final = "-"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the files."""
    parser.add_argument("files", metavar="FILE", nargs="+", help="a file, or - for stdin")
    add_json_flag(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print each file's tokens and their sum; files that cannot be read are named."""
    counted: list[tuple[str, int]] = []
    for file in arguments.files:
        try:
            counted.append((file, _tokens(file)))
        except OSError as error:
            complain(f"{file}: {error.strerror or error}")
    _print(counted, as_json=arguments.as_json)
    return 0 if len(counted) == len(arguments.files) else 1


def _tokens(file: str) -> int:
    """Return the tokens of a text, with invalid UTF-8 counted as displayed."""
    from efrit_budget.budget.estimate import estimate

    raw = sys.stdin.buffer.read() if file == STDIN else Path(file).read_bytes()
    return estimate(raw.decode("utf-8", "replace"))


def _print(counted: list[tuple[str, int]], *, as_json: bool) -> None:
    total = sum(tokens for _, tokens in counted)
    if as_json:
        names = (os.fsencode(path).decode("utf-8", "backslashreplace") for path, _ in counted)
        files = [{"path": name, "tokens": one[1]} for name, one in zip(names, counted, strict=True)]
        print_json({"files": files, "total": total}, compact=True)
        return
    rows = [(f"{tokens:,}", path) for path, tokens in counted]
    if len(counted) > 1:
        rows.append((f"{total:,}", "total"))
    width = max((len(tokens) for tokens, _ in rows), default=0)
    if rows:
        print_table([(tokens.rjust(width), path) for tokens, path in rows])
