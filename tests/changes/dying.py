"""A real sidecar that kills itself at one of the things it does with files.

`python -m tests.changes.dying NUMBER WHAT SIGNAL serve`: what it does is counted from the moment
there is a file SIGNAL, and instead of doing the one of that number it dies, as by `kill -9`. WHAT
is `any`, or `changing` for what changes files or folders, and what comes right behind that.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys

from efrit_budget.__main__ import main

CHANGES = {"os.rename", "os.remove", "os.link", "os.mkdir", "os.rmdir", "os.chmod", "os.chown"}
OPENED_TO_CHANGE = os.O_WRONLY | os.O_RDWR | os.O_CREAT
ITSELF = "."
"""A folder is opened by this name once something in it was changed."""


def works_on_files(event: str, arguments: tuple[object, ...], what: str) -> bool:
    """Whether an event of Python's own counts."""
    if event != "open":
        return event in CHANGES
    path, flags = arguments[0], arguments[2]
    changing = isinstance(flags, int) and flags & OPENED_TO_CHANGE
    return what == "any" or bool(changing) or path == ITSELF


def die_at(number: int, what: str, armed: str) -> None:
    """Have this process killed."""
    counted = itertools.count(1)

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        counts = works_on_files(event, arguments, what) and os.access(armed, os.F_OK)
        if counts and next(counted) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)


if __name__ == "__main__":
    die_at(int(sys.argv[1]), sys.argv[2], sys.argv[3])
    sys.argv[1:] = sys.argv[4:]
    sys.exit(main())
