"""Child processes, each the head of its own group, so that it is stopped with all it started."""

from __future__ import annotations

import contextlib
import fcntl
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO

from efrit_budget.cancellation import Cancellation
from efrit_budget.project import orphans

TERMINATE_SECONDS = 0.1
"""How long a group may take to leave after SIGTERM, before SIGKILL."""
PATIENCE_SECONDS = 0.5
"""How long pipes are waited for that a process outside the group holds open."""
POLL_SECONDS = 0.05
STOP_SECONDS = 1.0
"""The same where a person stops one program and waits for what it gives."""
LOCK_SECONDS = 0.2
ASKS_ONLY = 0
"""The signal that only tells whether there is anybody."""
PIPE_BYTES = 1024 * 1024
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


@dataclass(frozen=True)
class Finished:
    """How a child process ended, and what it wrote."""

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


class _Groups:
    """The process groups alive now, so that none outlives the sidecar."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._leaders: set[int] = set()

    def start(self, begin: Callable[[], subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
        """Begin a process; whoever ends them all meanwhile waits until it can be ended too."""
        with self._lock:
            process = begin()
            self._leaders.add(process.pid)
            return process

    def remove(self, leader: int) -> None:
        with self._lock:
            self._leaders.discard(leader)

    def all(self) -> list[int]:
        locked = self._lock.acquire(timeout=LOCK_SECONDS)
        try:
            return list(self._leaders)
        finally:
            if locked:
                self._lock.release()


_groups = _Groups()


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
) -> Finished:
    """Run a program to its end, to one of its limits, or until it is cancelled (which raises).

    When the program itself has ended, what it left running in its group is ended too. Of output
    that is longer than `kept_bytes`, that many are kept and the tail; the program goes on.
    """
    stdin = subprocess.DEVNULL if given is None else subprocess.PIPE
    room = most_bytes if kept_bytes is None else kept_bytes
    with _running(command, cancellation, cwd, env, stdin) as process:
        collector = _Collector(process, cancellation, timeout, room, kept_bytes is None)
        finished = collector.collect(given)
    cancellation.check()
    return finished


def follow(
    command: Sequence[str],
    take: Callable[[bytes], object],
    *,
    cwd: Path,
    cancellation: Cancellation,
    timeout: float | None = None,
    env: Mapping[str, str] | None = None,
) -> Finished:
    """Run a program likewise, and give what it writes away as it comes, without an end.

    Both streams come in the order they were written in, as a terminal would show them. When it is
    cancelled while it runs, what it wrote has been given away, and nothing is raised.
    """
    with (
        _running(command, cancellation, cwd, env, merged=True) as process,
        orphans.ended_with_this_process(process.pid),
    ):
        return _Collector(process, cancellation, timeout, take=take).collect(None)


@contextlib.contextmanager
def _running(
    command: Sequence[str],
    cancellation: Cancellation,
    cwd: Path,
    env: Mapping[str, str] | None,
    stdin: int = subprocess.DEVNULL,
    *,
    merged: bool = False,
) -> Iterator[subprocess.Popen[bytes]]:
    """A process that lives no longer than the block, with all it starts.

    One whose streams are merged, as at a terminal, is in a session of its own, without one. For
    others a group is enough: Linux shares the processor out by sessions, so that on a busy
    machine a program in a new one waits for its turn.
    """

    def begin() -> subprocess.Popen[bytes]:
        cancellation.check()
        return subprocess.Popen(  # noqa: S603  the caller names the program
            command,
            cwd=cwd,
            env=env,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if merged else subprocess.PIPE,
            start_new_session=merged,
            process_group=None if merged else 0,
        )

    process = _groups.start(begin)
    try:
        with cancellation.calling(lambda: _signal(process.pid, signal.SIGTERM)):
            yield process
    finally:
        _signal(process.pid, signal.SIGKILL)
        _groups.remove(process.pid)


@dataclass
class _Tail:
    """The end of an output of which not all is kept."""

    end: bytes = b""
    passed: int = 0

    def add(self, data: bytes) -> None:
        self.end = (self.end + data)[-TAIL_BYTES:]
        self.passed += len(data)


class _Collector:
    """Reads what a process writes, gives it what it is to read, and ends it in time."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        cancellation: Cancellation,
        timeout: float | None,
        room: int = 0,
        cuts: bool = False,
        take: Callable[[bytes], object] | None = None,
    ) -> None:
        self._process = process
        self._cancellation = cancellation
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._room = room
        self._cuts = cuts
        self._take = take
        self._left = False
        self._reads = 0
        self._timed_out = False
        self._cut = False
        self._kill_at: float | None = None
        self._leave_at: float | None = None
        self._selector = selectors.DefaultSelector()

    def collect(self, given: bytes | None) -> Finished:
        """Everything up to the end."""
        process = self._process
        stdout, stderr, tail = BytesIO(), BytesIO(), _Tail()
        with self._selector, contextlib.ExitStack() as pipes:
            for pipe in filter(None, (process.stdin, process.stdout, process.stderr)):
                pipes.callback(_close, pipe)
            self._read_into(process.stdout, stdout, tail)
            self._read_into(process.stderr, stderr, _Tail())
            self._write_from(process.stdin, memoryview(given or b""))
            while not self._over():
                self._wait()
                self._look_at_the_clock()
        code = self._exit_code()
        left = self._left or (not self._timed_out and _signal(process.pid, signal.SIGKILL))
        ended = (self._timed_out, self._cut, tail.end, tail.passed, left)
        return Finished(code, stdout.getvalue(), stderr.getvalue(), *ended)

    def _wait(self) -> None:
        """Wait for the pipes; once they have ended, for the process, which ends a little later."""
        if self._reads > READS_AT_ONCE:
            time.sleep(GATHER_SECONDS)
        if self._selector.get_map():
            for key, _ in self._selector.select(POLL_SECONDS):
                key.data()
        else:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(POLL_SECONDS)

    def _over(self) -> bool:
        """Whether the process has ended and its pipes too, or nobody waits for them any more."""
        ended = self._process.poll() is not None
        return (ended and not self._selector.get_map()) or _passed(self._leave_at)

    def _look_at_the_clock(self) -> None:
        if self._process.poll() is not None:
            if self._kill_at is None:
                self._left = _signal(self._process.pid, ASKS_ONLY)
            self._end(0)
        elif self._cancellation.cancelled:
            self._end(STOP_SECONDS if self._cancellation.by_person else TERMINATE_SECONDS)
        elif self._kill_at is None and _passed(self._deadline):
            self._timed_out = True
            _signal(self._process.pid, signal.SIGTERM)
            self._end(TERMINATE_SECONDS)
        if _passed(self._kill_at):
            _signal(self._process.pid, signal.SIGKILL)

    def _end(self, after: float) -> None:
        """Have the group killed after so many seconds, and leave its pipes some time later."""
        if self._kill_at is None:
            self._kill_at = time.monotonic() + after
            self._leave_at = self._kill_at + PATIENCE_SECONDS

    def _exit_code(self) -> int:
        """The exit code; a process that even SIGKILL does not end at once is left behind."""
        try:
            return self._process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            return -signal.SIGKILL

    # Pipes

    def _read_into(self, pipe: IO[bytes] | None, buffer: BytesIO, tail: _Tail) -> None:
        if pipe is None:
            return

        def read() -> None:
            data = os.read(pipe.fileno(), PIPE_BYTES)
            self._reads += 1
            self._keep(data, buffer, tail)
            if self._cut:
                self._end(0)
            if not data or self._cut:
                self._drop(pipe)

        _widen(pipe)
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

    def _write_from(self, pipe: IO[bytes] | None, rest: memoryview) -> None:
        if pipe is None:
            return
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


def _widen(pipe: IO[bytes]) -> None:
    """Let more wait in the pipe, where the system can."""
    if SET_PIPE_SIZE is not None:
        with contextlib.suppress(OSError):  # the person's share of pipes may be used up
            fcntl.fcntl(pipe.fileno(), SET_PIPE_SIZE, PIPE_BYTES)


def _close(pipe: IO[bytes]) -> None:
    with contextlib.suppress(OSError):  # a pipe whose other end is gone
        pipe.close()


def _passed(moment: float | None) -> bool:
    return moment is not None and time.monotonic() >= moment


def stop_all_groups() -> None:
    """End every child process at once, when the sidecar itself ends."""
    for leader in _groups.all():
        _signal(leader, signal.SIGKILL)


def _signal(leader: int, number: int) -> bool:
    """Whether there was anybody in the group to take it."""
    try:
        os.killpg(leader, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True
