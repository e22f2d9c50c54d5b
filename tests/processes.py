"""Functions about processes that a test did not start itself."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from tests.connection import TIMEOUT


def alive(pid: int) -> bool:
    """Return whether the process runs; a dead one that nobody has waited for does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def until(condition: Callable[[], bool], timeout: float = TIMEOUT, pause: float = 0.01) -> bool:
    """Wait for the condition, with a pause between two looks; false if it did not come true."""
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
    return True


def pid_in(file: Path) -> int:
    """Return the process id that a tool for tests wrote into a file."""
    assert until(file.exists), f"{file.name} was never written"
    return int(file.read_text(encoding="utf-8"))
