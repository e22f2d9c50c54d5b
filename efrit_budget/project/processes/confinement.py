"""Limit the files that a program may open, and the memory that it may use."""

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
"""Whether the system can limit the memory of a program."""
if ON_LINUX:
    from resource import prlimit
STATM = Path("/proc/self/statm")
MARGIN = 256 * 1024 * 1024
MOST_MEMORY = 768 * 1024 * 1024
"""The most bytes of a program's own memory; files that it maps to read are not counted."""
MOST_ADDRESSES = 1024 * 1024 * 1024
"""The most bytes that a program may map: Linux does not count all its memory for MOST_MEMORY."""

_one_at_a_time = threading.Lock()


@dataclass(frozen=True)
class Confinement:
    """The files and folders that one program may open, and the memory that it may use."""

    program: str
    readable: Sequence[Path] = ()
    writable: Sequence[Path] = ()
    memory: int = MOST_MEMORY
    maps_files: bool = False
    """Whether the program maps large files to read them; if not, MOST_ADDRESSES limits it too."""

    def start(self, begin: Callable[[], subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
        """Start the program by `begin` within its limits; without Landlock, limit only memory."""
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
            # The program inherits the limit; this process has it only meanwhile, with a margin.
            setrlimit(RLIMIT_DATA, (wanted if lower else before[0], before[1]))
            try:
                process = begin()
            finally:
                setrlimit(RLIMIT_DATA, before)
        with suppress(ProcessLookupError):  # the program has ended already
            prlimit(process.pid, RLIMIT_DATA, (self.memory, self.memory))
            if not self.maps_files:
                prlimit(process.pid, RLIMIT_AS, (MOST_ADDRESSES, MOST_ADDRESSES))
        return process
