"""The limits of a program that works on somebody else's files: what it opens, memory and time."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from efrit_budget.project.landlock import READ
from efrit_budget.project.programs import begin_restricted, own_rules

try:
    from resource import RLIMIT_DATA, prlimit
except ImportError:  # only Linux sets the limits of another process
    prlimit = None  # type: ignore[assignment]

MOST_MEMORY = 768 * 1024 * 1024
"""What one may keep in memory of its own; files that it maps to read them are not counted."""


@dataclass(frozen=True)
class Confinement:
    """What one program may open: its own files, and these to read, with all below them."""

    program: str
    readable: tuple[Path, ...] = ()
    memory: int = MOST_MEMORY

    def start(self, begin: Callable[[], subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
        """Begin the program within its limits; without Landlock, memory alone is limited."""
        own = own_rules(self.program)
        if own is None:
            process = begin()
        else:
            process = begin_restricted((*own, *((path, READ) for path in self.readable)), begin)
        if prlimit is not None:
            with suppress(ProcessLookupError):  # it has ended already
                prlimit(process.pid, RLIMIT_DATA, (self.memory, self.memory))
        return process


def confined(program: str | Path, readable: Iterable[Path] = ()) -> Confinement:
    """Return the limits of a program that reads these files and folders."""
    return Confinement(str(program), tuple(readable))
