"""A real sidecar that kills itself at one of its operations on files.

`python -m tests.changes.dying NUMBER WHAT SIGNAL serve` counts operations from the moment a file
SIGNAL exists, and dies instead of performing number NUMBER, as by `kill -9`. WHAT is `any`, or
`changing` for operations that change files or folders and the ones right after them.
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
"""The name by which a folder is opened after something in it was changed."""


def works_on_files(event: str, arguments: tuple[object, ...], what: str) -> bool:
    """Return whether an audit event is one that this process counts, and dies at."""
    if event != "open":
        return event in CHANGES
    path, flags = arguments[0], arguments[2]
    changing = isinstance(flags, int) and flags & OPENED_TO_CHANGE
    return what == "any" or bool(changing) or path == ITSELF


def die_at(number: int, what: str, armed: str) -> None:
    """Kill this process at one of its operations on files."""
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
