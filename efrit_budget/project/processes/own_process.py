"""Hide this process's environment and memory from other processes; return freed memory."""

import ctypes
import os
import sys
from contextlib import suppress
from pathlib import Path

from efrit_budget.project.processes.environment import holds_key

OURS = "EFRIT_BUDGET_"
SET_DUMPABLE = 4
ENVIRONMENT_BEGINS, ENVIRONMENT_ENDS = 50, 51
"""Fields of /proc/self/stat, counted from one: where the environment was at the start."""

ARENA_MAX, MMAP_THRESHOLD = -8, -3
"""Options of glibc's mallopt."""
LARGE_BYTES = 1024 * 1024


def return_freed_memory() -> None:
    """Have all threads share one heap, and return large blocks to the system once they are free.

    Otherwise each thread would keep the memory that its largest search or image once took.
    """
    with suppress(AttributeError, OSError):  # another C library
        library = ctypes.CDLL(None)
        library.mallopt(ARENA_MAX, 1)
        library.mallopt(MMAP_THRESHOLD, LARGE_BYTES)


def forget_keys() -> None:
    """Remove keys from the environment, and on Linux from its copy in /proc.

    Settings of this program stay. On Linux, other processes cannot look into this one from now on.
    """
    held = {
        name: value
        for name, value in os.environ.items()
        if holds_key(name, value) and not name.startswith(OURS)
    }
    for name in held:
        del os.environ[name]
    if sys.platform == "linux":
        with suppress(OSError, ValueError, IndexError):
            _overwrite([os.fsencode(f"{name}={value}") for name, value in held.items()])
        ctypes.CDLL(None).prctl(SET_DUMPABLE, 0, 0, 0, 0)


def _overwrite(entries: list[bytes]) -> None:
    """Overwrite entries of the environment in the memory that /proc/PID/environ shows."""
    fields = Path("/proc/self/stat").read_bytes().rpartition(b") ")[2].split()
    begin, end = (int(fields[at - 3]) for at in (ENVIRONMENT_BEGINS, ENVIRONMENT_ENDS))
    if not 0 < begin < end:
        return
    place = begin
    for entry in ctypes.string_at(begin, end - begin).split(b"\0"):
        if entry in entries:
            ctypes.memset(place, ord("-"), len(entry))
        place += len(entry) + 1
