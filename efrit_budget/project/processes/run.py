"""Run child processes in groups, so that each is stopped with all it started."""

import contextlib
import fcntl
import logging
import math
import os
import re
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
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
    start = None if confinement is None else confinement.start
    with _running(command, cancellation, cwd, env, stdin, start=start) as child:
        room = most_bytes if kept_bytes is None else kept_bytes
        collector = _Collector(child, cancellation, room, cuts=kept_bytes is None)
        finished = collector.collect(given, timeout, may_wait=confinement is None)
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
        return _Collector(child, cancellation, take=take).collect(b"\n", timeout)


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

    With an origin it is a command of the model's: its streams are merged, and it has a session of
    its own. For others a group is enough: a new session waits for its turn on a busy Linux.
    """
    begin: partial[subprocess.Popen[bytes]] = partial(
        subprocess.Popen,
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
    child = groups.start(begin if start is None else partial(start, begin), cancellation, origin)
    try:
        with cancellation.calling(lambda: child.signal(signal.SIGTERM)):
            yield child
    finally:
        child.finish()
        ended = (child.process.returncode, time.monotonic() - begun)
        log.debug("%s ended with %s in %.1f s", Path(command[0]).name, *ended)


@dataclass
class _Collector:
    """Reads a process's output, writes its input, and stops it at its limits."""

    child: Child
    cancellation: Cancellation
    room: int = 0
    """How many bytes of output are still kept."""
    cuts: bool = False
    """Whether to stop the process once there is no room."""
    take: Callable[[bytes], object] | None = None
    """Takes the output instead."""
    deadline: float = math.inf
    look_at: float = math.inf
    """When to look whether the process does anything; never at one that may wait."""
    used: int = -1
    """The processor time that it had used by the last look."""
    kill_at: float = math.inf
    leave_at: float = math.inf
    """When its pipes are left to whoever holds them open."""
    reads: int = 0
    tail: bytes = b""
    passed: int = 0
    is_cut: bool = False
    timed_out: bool = False
    waited: bool = False
    selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)

    def collect(
        self, given: bytes | None, timeout: float | None, *, may_wait: bool = True
    ) -> Finished:
        """Return the outcome when the process has ended."""
        moment = time.monotonic()
        self.deadline = math.inf if timeout is None else moment + timeout
        self.look_at = math.inf if may_wait else moment + LOOK_SECONDS
        process, stdout, stderr = self.child.process, BytesIO(), BytesIO()
        with self.selector, contextlib.ExitStack() as pipes:
            for pipe, kept in ((process.stdout, stdout), (process.stderr, stderr)):
                if pipe is not None:
                    if SET_PIPE_SIZE is not None:
                        with contextlib.suppress(OSError):  # the person's share may be used up
                            fcntl.fcntl(pipe.fileno(), SET_PIPE_SIZE, PIPE_BYTES)
                    read = partial(self._read, pipes.enter_context(pipe), kept, kept is stdout)
                    self.selector.register(pipe, selectors.EVENT_READ, read)
            if process.stdin is not None:
                os.set_blocking(process.stdin.fileno(), False)
                rest = BytesIO(given or b"")
                write = partial(self._write, pipes.enter_context(process.stdin), rest)
                self.selector.register(process.stdin, selectors.EVENT_WRITE, write)
            while self.selector.get_map() or self.child.code() is None:
                if time.monotonic() >= self.leave_at:
                    break
                self._step()
        code = self.child.code()
        if code is None:
            code = self.child.wait(PATIENCE_SECONDS)
        if code is None:  # even SIGKILL does not end it at once: it is left behind
            code = -signal.SIGKILL
        left = self.child.finish() and not self.timed_out
        ended = (self.timed_out, self.is_cut, self.tail, self.passed, left, self.waited)
        return Finished(code, stdout.getvalue(), stderr.getvalue(), *ended)

    def _step(self) -> None:
        """Serve the pipes, or wait for the process once they have ended; then see to the limits.

        Where the process has to end, it is killed, and its pipes are left some time later.
        """
        if self.selector.get_map():
            for key, _ in self.selector.select(POLL_SECONDS):
                key.data()
        else:
            self.child.wait(POLL_SECONDS)
        moment = time.monotonic()
        if self.leave_at == math.inf:
            if self.is_cut:
                self.kill_at = moment
            elif self.child.code() is not None:
                self.child.finish()
                self.leave_at = moment + PATIENCE_SECONDS
            elif self.cancellation.cancelled:
                by_person = self.cancellation.by_person
                self.kill_at = moment + (STOP_SECONDS if by_person else TERMINATE_SECONDS)
            elif moment >= self.deadline or (moment >= self.look_at and self._only_waits(moment)):
                self.timed_out = True
                self.child.signal(signal.SIGTERM)
                self.kill_at = moment + TERMINATE_SECONDS
        if self.kill_at < math.inf:
            self.leave_at = self.kill_at + PATIENCE_SECONDS
        if moment >= self.kill_at:
            self.child.signal(signal.SIGKILL)

    def _only_waits(self, moment: float) -> bool:
        """Return whether no thread has run for a while."""
        states, used = _activity(self.child.process.pid)
        if used != self.used or not STATES_AT_WORK.isdisjoint(states) or not states:
            self.look_at, self.used = moment + LOOK_SECONDS, used
        idle = moment - (self.look_at - LOOK_SECONDS)
        self.waited = bool(states) and idle >= WAITING_SECONDS
        return self.waited

    def _read(self, pipe: IO[bytes], kept: BytesIO, has_tail: bool) -> None:
        """Take what a pipe gives; keep what there is room for, and of the output the end."""
        if self.reads > READS_AT_ONCE:
            time.sleep(GATHER_SECONDS)
        data = os.read(pipe.fileno(), PIPE_BYTES)
        self.reads += 1
        if self.take is not None:
            self.take(data)
        else:
            over = data[kept.write(data[: self.room]) :]
            self.room -= len(data) - len(over)
            if over and self.cuts:
                self.is_cut = True
            elif over and has_tail:
                self.tail = (self.tail + over)[-TAIL_BYTES:]
                self.passed += len(over)
        if not data or self.is_cut:
            self.selector.unregister(pipe)
            pipe.close()

    def _write(self, pipe: IO[bytes], rest: BytesIO) -> None:
        """Give a pipe as much as it takes."""
        share = rest.getbuffer()[rest.tell() :][:SHARE_BYTES]
        try:
            rest.seek(os.write(pipe.fileno(), share), os.SEEK_CUR)
        except BrokenPipeError:
            rest.seek(0, os.SEEK_END)
        if rest.tell() == len(rest.getbuffer()):
            self.selector.unregister(pipe)
            pipe.close()


def _activity(process: int) -> tuple[set[str], int]:
    """Return the thread states and CPU time of a program, from Linux."""
    try:
        threads = Path(f"/proc/{process}/task").iterdir()
        stats = [(thread / "stat").read_bytes().rpartition(b") ")[2].split() for thread in threads]
    except OSError:
        return set(), -1
    return {stat[0].decode() for stat in stats}, sum(int(s[11]) + int(s[12]) for s in stats)
