"""Run child processes in groups, so that each is stopped with all it started."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import re
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO

from efrit_budget.cancellation import Cancellation
from efrit_budget.project.processes import groups
from efrit_budget.project.processes.confinement import Confinement
from efrit_budget.project.processes.groups import Child
from efrit_budget.project.processes.programs import begin_hidden
from efrit_budget.project.processes.strays import MARK, Origin, new_origin

log = logging.getLogger(__name__)

TERMINATE_SECONDS = 0.1
"""How long a group may take to leave after SIGTERM, before SIGKILL."""
PATIENCE_SECONDS = 0.5
"""How long pipes are waited for that a process outside the group holds open."""
POLL_SECONDS = 0.05
STOP_SECONDS = 1.0
"""The same where a person stops one program and waits for what it gives."""
PIPE_BYTES = 1024 * 1024
"""How much may wait in a pipe, where the system can."""
SHARE_BYTES = 64 * 1024
"""How much is given to a program at once."""
SET_PIPE_SIZE = getattr(fcntl, "F_SETPIPE_SZ", None)
READS_AT_ONCE = 32
GATHER_SECONDS = 0.001
"""How long a program that goes on writing is left to it between two reads: thousands of small
reads would take the processor from it."""
TAIL_BYTES = 64 * 1024
"""How much of the end is kept where not all is."""
MOST_BYTES = 256 * 1024 * 1024
"""The most output that is taken from one program."""
SHELL = "/bin/sh"
OUT_OF_MEMORY = re.compile(
    rb"(?i)out of memory|memory allocation of \d+ bytes failed|(cannot|failed to) allocate memory"
)
STATES_AT_WORK = frozenset("RD")
"""A thread that runs, wants to run, or waits for a disk."""
LOOK_SECONDS = 1.0
WAITING_SECONDS = 5.0
"""How long a program may do nothing at all, where it has no reason to wait."""
GATE = 'read -r efrit_go || exit; exec "$0" -c "$1" </dev/null'
"""Waits for a line before it becomes a shell that runs a command; without one it ends."""


Start = Callable[[Callable[[], subprocess.Popen[bytes]]], subprocess.Popen[bytes]]
"""Begins a program in its own way."""


@dataclass(frozen=True)
class Finished:
    """The exit code and output of a child process."""

    code: int
    stdout: bytes
    stderr: bytes
    timed_out: bool
    cut: bool = False
    """Whether it was stopped because it wrote more than was wanted."""
    tail: bytes = b""
    """The end of what it wrote, where not all of it was kept."""
    passed: int = 0
    """How many bytes it wrote behind `stdout`, those of the tail included."""
    left: bool = False
    """Whether it ended and left others of its group running, which were ended then."""
    waited: bool = False
    """Whether it was stopped because it waited for what did not come: at a pipe, say."""

    @property
    def out_of_memory(self) -> bool:
        """Return whether the process reports that memory ran out."""
        return self.code != 0 and OUT_OF_MEMORY.search(self.stderr) is not None


def run(  # noqa: PLR0913  each limit has its own name
    command: Sequence[str],
    *,
    cwd: Path,
    cancellation: Cancellation,
    timeout: float | None = None,
    env: Mapping[str, str] | None = None,
    given: bytes | None = None,
    most_bytes: int = MOST_BYTES,
    kept_bytes: int | None = None,
    confinement: Confinement | None = None,
) -> Finished:
    """Run a program to its end, to one of its limits, or until it is cancelled (which raises).

    When the program itself has ended, what it left running in its group is ended too. Of output
    that is longer than `kept_bytes`, that many are kept and the tail; the program goes on. One
    that is confined is ended too when it waits for something that nobody is going to give it.
    """
    stdin = subprocess.DEVNULL if given is None else subprocess.PIPE
    room = most_bytes if kept_bytes is None else kept_bytes
    start = None if confinement is None else confinement.start
    with _running(command, cancellation, cwd, env, stdin, start=start) as child:
        collector = _Collector(child, cancellation, timeout, room, kept_bytes is None)
        collector.may_wait = confinement is None
        finished = collector.collect(given)
    cancellation.check()
    return finished


def follow(
    script: str,
    take: Callable[[bytes], object],
    *,
    cwd: Path,
    cancellation: Cancellation,
    timeout: float | None = None,
    env: Mapping[str, str] | None = None,
    hides_others: bool = False,
) -> Finished:
    """Run a shell command likewise, and pass on what it writes as it comes, without an end.

    Both streams come in the order they were written in, as a terminal would show them. When it is
    cancelled while it runs, what it wrote has been passed on, and nothing is raised. It begins only
    when it is sure to end with this process, even if that is killed. With `hides_others` it cannot
    look into processes that it did not start, where the system has Landlock.
    """
    command = [SHELL, "-c", GATE, SHELL, script]
    origin = new_origin()
    marked = {**(os.environ if env is None else env), MARK: origin.mark}
    start = begin_hidden if hides_others else None
    with _running(
        command, cancellation, cwd, marked, subprocess.PIPE, origin=origin, start=start
    ) as child:
        return _Collector(child, cancellation, timeout, take=take).collect(b"\n")


@contextlib.contextmanager
def _running(
    command: Sequence[str],
    cancellation: Cancellation,
    cwd: Path,
    env: Mapping[str, str] | None,
    stdin: int,
    *,
    origin: Origin | None = None,
    start: Start | None = None,
) -> Iterator[Child]:
    """Start a program that lives no longer than the block, with all it starts.

    With an origin it is a command, as at a terminal, without one: its streams are merged, and it
    has a session of its own. For others a group is enough: Linux shares the processor out by
    sessions, so that on a busy machine a program in a new one waits for its turn.
    """

    def begin() -> subprocess.Popen[bytes]:
        cancellation.check()
        return subprocess.Popen(  # noqa: S603  the caller names the program
            command,
            cwd=cwd,
            env=env,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if origin is None else subprocess.STDOUT,
            start_new_session=origin is not None,
            process_group=0 if origin is None else None,
        )

    begun = time.monotonic()
    child = groups.start(begin if start is None else lambda: start(begin), origin)
    try:
        with cancellation.calling(lambda: child.signal(signal.SIGTERM)):
            yield child
    finally:
        child.finish()
        if log.isEnabledFor(logging.DEBUG):
            milliseconds = (time.monotonic() - begun) * 1000
            code = child.process.returncode
            log.debug("%s ended with %s in %.1f ms", Path(command[0]).name, code, milliseconds)


@dataclass
class _Tail:
    """The end of an output that is not kept whole."""

    end: bytes = b""
    passed: int = 0

    def add(self, data: bytes) -> None:
        self.end = (self.end + data)[-TAIL_BYTES:]
        self.passed += len(data)


class _Collector:
    """Reads a process's output, writes its input, and stops it at its limits."""

    def __init__(
        self,
        child: Child,
        cancellation: Cancellation,
        timeout: float | None,
        room: int = 0,
        cuts: bool = False,
        take: Callable[[bytes], object] | None = None,
    ) -> None:
        self._child = child
        self._cancellation = cancellation
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._room = room
        self._cuts = cuts
        self._take = take
        self._reads = 0
        self._timed_out = False
        self._cut = False
        self._kill_at: float | None = None
        self._leave_at: float | None = None
        self._selector = selectors.DefaultSelector()
        self.may_wait = True
        self._waited = False
        self._last_work = (time.monotonic(), -1)
        """When it was seen to do something, and the processor time it had used by then."""

    def collect(self, given: bytes | None) -> Finished:
        """Return the outcome when the process has ended."""
        process = self._child.process
        stdout, stderr, tail = BytesIO(), BytesIO(), _Tail()
        with self._selector, contextlib.ExitStack() as pipes:
            for pipe in filter(None, (process.stdin, process.stdout, process.stderr)):
                pipes.callback(_close, pipe)
            if process.stdout is not None:
                self._read_into(process.stdout, stdout, tail)
            if process.stderr is not None:
                self._read_into(process.stderr, stderr, _Tail())
            if process.stdin is not None:
                self._write_from(process.stdin, memoryview(given or b""))
            while self._goes_on():
                self._wait()
                self._look_at_the_clock()
        code = self._child.wait(PATIENCE_SECONDS)
        if code is None:  # even SIGKILL does not end it at once: it is left behind
            code = -signal.SIGKILL
        left = self._child.finish() and not self._timed_out
        ended = (self._timed_out, self._cut, tail.end, tail.passed, left, self._waited)
        return Finished(code, stdout.getvalue(), stderr.getvalue(), *ended)

    def _wait(self) -> None:
        """Wait for the pipes; once they have ended, for the process, which ends a little later."""
        if self._reads > READS_AT_ONCE:
            time.sleep(GATHER_SECONDS)
        if self._selector.get_map():
            for key, _ in self._selector.select(POLL_SECONDS):
                key.data()
        else:
            self._child.wait(POLL_SECONDS)

    def _goes_on(self) -> bool:
        """Tell if the process runs or a pipe is open, and somebody waits for them."""
        runs = bool(self._selector.get_map()) or self._child.code() is None
        return runs and not _passed(self._leave_at)

    def _look_at_the_clock(self) -> None:
        if self._kill_at is None and self._child.code() is not None:
            self._child.finish()
            self._end(0)
        elif self._cancellation.cancelled:
            self._end(STOP_SECONDS if self._cancellation.by_person else TERMINATE_SECONDS)
        elif self._kill_at is None and (_passed(self._deadline) or self._only_waits()):
            self._timed_out = True
            self._child.signal(signal.SIGTERM)
            self._end(TERMINATE_SECONDS)
        if _passed(self._kill_at):
            self._child.signal(signal.SIGKILL)

    def _only_waits(self) -> bool:
        """Return whether no thread has run for a while."""
        since, used = self._last_work
        moment = time.monotonic()
        if self.may_wait or moment - since < LOOK_SECONDS:
            return False
        states, now_used = _activity(self._child.process.pid)
        if now_used != used or not STATES_AT_WORK.isdisjoint(states) or not states:
            self._last_work = (moment, now_used)
        self._waited = bool(states) and moment - self._last_work[0] >= WAITING_SECONDS
        return self._waited

    def _end(self, after: float) -> None:
        """Have the group killed after so many seconds, and leave its pipes some time later."""
        if self._kill_at is None:
            self._kill_at = time.monotonic() + after
            self._leave_at = self._kill_at + PATIENCE_SECONDS

    # Pipes

    def _read_into(self, pipe: IO[bytes], buffer: BytesIO, tail: _Tail) -> None:
        def read() -> None:
            data = os.read(pipe.fileno(), PIPE_BYTES)
            self._reads += 1
            self._keep(data, buffer, tail)
            if self._cut:
                self._end(0)
            if not data or self._cut:
                self._drop(pipe)

        if SET_PIPE_SIZE is not None:
            with contextlib.suppress(OSError):  # the person's share of pipes may be used up
                fcntl.fcntl(pipe.fileno(), SET_PIPE_SIZE, PIPE_BYTES)
        self._selector.register(pipe, selectors.EVENT_READ, read)

    def _keep(self, data: bytes, buffer: BytesIO, tail: _Tail) -> None:
        if self._take is not None:
            self._take(data)
            return
        kept = data[: self._room]
        buffer.write(kept)
        self._room -= len(kept)
        if self._cuts:
            self._cut = self._cut or len(kept) < len(data)
        else:
            tail.add(data[len(kept) :])

    def _write_from(self, pipe: IO[bytes], rest: memoryview) -> None:
        os.set_blocking(pipe.fileno(), False)

        def write() -> None:
            nonlocal rest
            try:
                rest = rest[os.write(pipe.fileno(), rest[:SHARE_BYTES]) :]
            except BrokenPipeError:
                rest = rest[:0]
            if not rest:
                self._drop(pipe)

        self._selector.register(pipe, selectors.EVENT_WRITE, write)

    def _drop(self, pipe: IO[bytes]) -> None:
        self._selector.unregister(pipe)
        _close(pipe)


def _close(pipe: IO[bytes]) -> None:
    with contextlib.suppress(OSError):  # a pipe whose other end is gone
        pipe.close()


def _activity(process: int) -> tuple[set[str], int]:
    """Return the thread states and CPU time of a program, from Linux."""
    try:
        threads = Path(f"/proc/{process}/task").iterdir()
        stats = [(thread / "stat").read_bytes().rpartition(b") ")[2].split() for thread in threads]
    except OSError:
        return set(), -1
    return {stat[0].decode() for stat in stats}, sum(int(s[11]) + int(s[12]) for s in stats)


def _passed(moment: float | None) -> bool:
    return moment is not None and time.monotonic() >= moment
