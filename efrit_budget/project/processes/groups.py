"""Process groups that end with their child process and with the sidecar.

The system may give the id of a process to a new process as soon as the parent has collected the
old one and its group is empty. So a child is collected last, together with the last signal to its
group: no signal ever reaches the group of another program.
"""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from efrit_budget.cancellation import Cancellation
from efrit_budget.project.processes import orphans, strays
from efrit_budget.project.processes.strays import Origin

LOCK_SECONDS = 0.2
PATIENCE_SECONDS = 0.5
"""The seconds that a process may take to end after SIGKILL."""
SHORTEST_PAUSE, LONGEST_PAUSE = 0.0005, 0.05
"""Seconds between two looks at a process that is about to end."""


@dataclass(eq=False)
class Child:
    """A child process and its group."""

    process: subprocess.Popen[bytes]
    origin: Origin | None = None
    """The mark of a command that must end with all that it started; None for other programs."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _finished: bool = False
    _left: bool = False

    def code(self) -> int | None:
        """Return the exit code, or None while the process runs; do not collect the process."""
        if self.process.returncode is not None:
            return self.process.returncode
        look = os.WEXITED | os.WNOHANG | os.WNOWAIT
        try:
            ended = os.waitid(os.P_PID, self.process.pid, look)
        except (AttributeError, ChildProcessError):  # macOS; or SIGCHLD is ignored
            return self.process.poll()
        if ended is None:
            return None
        return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status

    def wait(self, seconds: float) -> int | None:
        """Wait for the process at most so long; return its exit code, or None if it still runs."""
        deadline, pause = time.monotonic() + seconds, SHORTEST_PAUSE
        while (code := self.code()) is None and time.monotonic() < deadline:
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
        return code

    def signal(self, number: int) -> None:
        """Send a signal to the group; do nothing after `finish`."""
        with self._lock:
            if not self._finished:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(self.process.pid, number)

    def finish(self) -> bool:
        """Kill the group and collect the process; return whether others of the group still ran."""
        if self.code() is None:
            self.signal(signal.SIGKILL)
            self.wait(PATIENCE_SECONDS)
        with self._lock:
            if not self._finished:
                self._finished = True
                self._left = _groups.end(self)
        return self._left


class _Groups:
    """The running process groups."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._leaders: dict[int, Origin | None] = {}

    def start(
        self,
        begin: Callable[[], subprocess.Popen[bytes]],
        cancellation: Cancellation,
        origin: Origin | None = None,
    ) -> Child:
        """Start a process, or raise if cancelled; `kill_all`, if called meanwhile, kills it too."""
        with self._lock:
            cancellation.check()
            child = Child(begin(), origin)
            self._leaders[child.process.pid] = origin
            if origin is not None:
                orphans.guard(child.process.pid)
            return child

    def end(self, child: Child) -> bool:
        """Collect a process and kill its group and strays; return whether others still ran."""
        leader = child.process.pid
        with self._lock:
            child.process.poll()
            try:
                os.killpg(leader, signal.SIGKILL)
                left = True
            except (ProcessLookupError, PermissionError):  # the group is empty
                left = False
            self._leaders.pop(leader, None)
            if child.origin is not None:
                orphans.release(leader)
                known = {*self._leaders, *orphans.guards()}
                others = [*filter(None, self._leaders.values())]
                left = strays.end_strays(child.origin, known, others) or left
        return left

    def kill_all(self) -> None:
        """Kill every group, when the sidecar itself ends."""
        locked = self._lock.acquire(timeout=LOCK_SECONDS)
        try:
            for leader in tuple(self._leaders):
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(leader, signal.SIGKILL)
        finally:
            if locked:
                self._lock.release()


_groups = _Groups()
start = _groups.start
stop_all_groups = _groups.kill_all
