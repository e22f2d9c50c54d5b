"""Find processes that left a command's group, such as daemons; Linux only.

A process whose parent ends becomes a child of this process, so that it can be found. A variable in
its environment, MARK, names the command that started it. Such a process is in
another session than this process and the programs that this process starts for itself.
"""

import ctypes
import os
import secrets
import signal
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path

MARK = "EFRIT_BUDGET_COMMAND"
TOKEN = secrets.token_hex(8)
"""The random text with which all marks of this process begin."""
SET_CHILD_SUBREAPER = 36
ROUNDS = 20
"""The most searches for strays; new ones may start while others are killed."""
PATIENCE_SECONDS, PAUSE_SECONDS = 0.5, 0.002

_numbers = count()


@dataclass(frozen=True)
class Origin:
    """The mark that identifies the processes of one command."""

    mark: str
    before: frozenset[int]
    """The ids of the children that this process had before the command started."""


def new_origin() -> Origin:
    """Return the origin of a new command; from now on, orphans become children of this process."""
    _adopt()
    return Origin(f"{TOKEN}.{next(_numbers)}", frozenset(_children(os.getpid())))


@cache
def _adopt() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_strays(origin: Origin, known: Collection[int], others: Collection[Origin]) -> bool:
    """Kill the processes that a command left behind; return whether any still ran.

    `known` are children that are no strays, `others` are the origins of running commands. A
    process without a mark is killed only if no other command runs that could have started it.
    """
    found, marks = False, {other.mark for other in others}
    for _ in range(ROUNDS):
        orphans = _orphans({*known, *origin.before})
        strays = [pid for pid in orphans if _belongs(pid, origin.mark, marks)]
        if not strays:
            break
        found = _end(strays) or found
    return found


def _orphans(known: Collection[int]) -> Iterator[int]:
    session = os.getsid(0)
    for pid in _children(os.getpid()):
        with suppress(ProcessLookupError):
            if pid not in known and os.getsid(pid) != session:
                yield pid


def _belongs(pid: int, mark: str, others: set[str]) -> bool:
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return not others
    marks = [
        entry.partition(b"=")[2].decode("utf-8", "replace")
        for entry in environment
        if entry.startswith(f"{MARK}=".encode())
    ]
    return mark in marks or not (others or marks)


def _end(strays: list[int]) -> bool:
    """Kill orphans and all their descendants; collect the orphans; return whether any still ran."""
    ran = False
    for pid in strays:
        for each in (*_below(pid), pid):
            with suppress(ProcessLookupError, PermissionError):
                ran = ran or _state(each) != "Z"
                os.kill(each, signal.SIGKILL)
        _collect(pid)
    return ran


def _collect(pid: int) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    with suppress(ChildProcessError):
        while os.waitpid(pid, os.WNOHANG)[0] == 0 and time.monotonic() < deadline:
            time.sleep(PAUSE_SECONDS)


def _below(pid: int) -> Iterator[int]:
    for child in _children(pid):
        yield child
        yield from _below(child)


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                found += map(int, (task / "children").read_text().split())
    return found


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(") ")[2][:1]
    except OSError:
        return "Z"
