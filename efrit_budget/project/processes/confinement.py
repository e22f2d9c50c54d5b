"""Limit what a program may open and use in a foreign repository."""

import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from resource import RLIM_INFINITY, RLIMIT_AS, RLIMIT_DATA, getpagesize, getrlimit, setrlimit

from efrit_budget.project.processes.landlock import CHANGE, READ, restrict_to
from efrit_budget.project.processes.programs import begin_restricted, own_rules

ON_LINUX = sys.platform == "linux"
"""Elsewhere the system does not limit what a program takes."""
if ON_LINUX:
    from resource import prlimit
STATM = Path("/proc/self/statm")
MARGIN = 256 * 1024 * 1024
MOST_MEMORY = 768 * 1024 * 1024
"""What one may keep in memory of its own; files that it maps to read them are not counted."""
MOST_ADDRESSES = 1024 * 1024 * 1024
"""What it may map in all. Linux does not see each way in which memory becomes a program's own."""

_one_at_a_time = threading.Lock()


@dataclass(frozen=True)
class Confinement:
    """The files and folders that one program may open."""

    program: str
    readable: Sequence[Path] = ()
    writable: Sequence[Path] = ()
    memory: int = MOST_MEMORY
    maps_files: bool = False
    """Whether it maps files of any size to read them; of others all that they map is limited."""

    def start(self, begin: Callable[[], subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
        """Begin the program within its limits; without Landlock, memory alone is limited."""
        own = own_rules(self.program)
        if own is not None:
            others = [(path, READ) for path in self.readable]
            others += [(path, CHANGE) for path in self.writable]
            begin = partial(begin_restricted, partial(restrict_to, (*own, *others)), begin)
        if not ON_LINUX:
            return begin()
        with _one_at_a_time:
            before = getrlimit(RLIMIT_DATA)
            taken = int(STATM.read_bytes().split()[5]) * getpagesize()
            wanted = max(self.memory, taken + MARGIN)
            lower = before[0] == RLIM_INFINITY or wanted < before[0]
            # It begins with this limit; this process has it meanwhile, never so low as to reach it.
            setrlimit(RLIMIT_DATA, (wanted if lower else before[0], before[1]))
            try:
                process = begin()
            finally:
                setrlimit(RLIMIT_DATA, before)
        with suppress(ProcessLookupError):  # it has ended already
            prlimit(process.pid, RLIMIT_DATA, (self.memory, self.memory))
            if not self.maps_files:
                prlimit(process.pid, RLIMIT_AS, (MOST_ADDRESSES, MOST_ADDRESSES))
        return process
