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
"""Seconds from the SIGTERM to a group until the SIGKILL."""
PATIENCE_SECONDS = 0.5
"""Seconds for which pipes are still read after the end, if another process has them open."""
POLL_SECONDS = 0.05
STOP_SECONDS = 1.0
"""Seconds until SIGKILL if the person stopped the program, and waits for its last output."""
PIPE_BYTES = 1024 * 1024
"""The bytes that a pipe holds, if the system allows it, and the most that are read at once."""
SHARE_BYTES = 64 * 1024
"""The most bytes of input that are written to a program at once."""
SET_PIPE_SIZE = getattr(fcntl, "F_SETPIPE_SZ", None)
READS_AT_ONCE = 32
GATHER_SECONDS = 0.001
"""Seconds to wait before each read after the first READS_AT_ONCE: thousands of small reads would
take the processor from the program that writes."""
TAIL_BYTES = 64 * 1024
"""The bytes of an output's end that are kept if the output is longer than `kept_bytes`."""
MOST_BYTES = 256 * 1024 * 1024
"""The most bytes of output, and of errors, that are read from one program."""
SHELL = "/bin/sh"
OUT_OF_MEMORY = re.compile(
    rb"(?i)out of memory|memory allocation of \d+ bytes failed|(cannot|failed to) allocate memory"
)
STATES_AT_WORK = frozenset("RD")
"""The states of a thread that runs, is ready to run, or waits for a disk."""
OPENING_PIPE = "wait_for_partner"
"""The function of Linux in which a thread waits until a pipe that it opens has a writer."""
LOOK_SECONDS = 1.0
WAITING_SECONDS = 5.0
"""Seconds for which a confined program may do nothing, or open a pipe, before it is ended."""
GATE = 'read -r efrit_go || exit; exec "$0" -c "$1" </dev/null'
"""A script that reads a line, then becomes a shell that runs `$1`; it ends if no line comes."""


Start = Callable[[Callable[[], subprocess.Popen[bytes]]], subprocess.Popen[bytes]]
"""A function that starts a program by calling its argument, under restrictions."""


@dataclass(frozen=True)
class Finished:
    """The exit code and output of a child process."""

    code: int
    stdout: bytes
    stderr: bytes
    timed_out: bool
    cut: bool = False
    """Whether the process was stopped because it wrote more than `most_bytes`."""
    tail: bytes = b""
    """The end of the output, if not all of the output was kept."""
    passed: int = 0
    """The number of bytes of the output behind `stdout`, including those of the tail."""
    left: bool = False
    """Whether other processes of its group still ran at its end; they were killed then."""
    waited: bool = False
    """Whether the process was stopped because it only waited, at a pipe for example."""

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

    When the program has ended, the other processes of its group are killed. With `kept_bytes`, only
    that many bytes of its output and of its errors are kept, and the tail; without, the program is
    stopped when either has more than `most_bytes`. A confined program is also stopped if it only
    waits.
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
    """Run a shell command, and pass all its output to `take` as it is written.

    Standard output and errors come in the order in which they were written. If the command is
    cancelled while it runs, nothing is raised. The command begins only when it is sure to end with
    this process, even if this process is killed. With `hides_others`, it cannot look into processes
    that it did not start, if the system has Landlock.
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
    """Start a program; at the end of the block, kill it with all that it started.

    A program with an origin is a command of the model's: its streams are merged, and it is in a
    session of its own. Other programs are in a group of their own: a busy Linux runs these sooner.
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
    """The number of bytes to keep of the output, and as many of the errors."""
    cuts: bool = False
    """Whether to stop the process when it writes more than there is room for."""
    take: Callable[[bytes], object] | None = None
    """A function that takes the output; no output is kept then."""
    deadline: float = math.inf
    look_at: float = math.inf
    """The next time to check whether the process does anything; never, if it may wait."""
    used: int = -1
    """The processor time that the process had used by the last check."""
    kill_at: float = math.inf
    leave_at: float = math.inf
    """The time to stop reading pipes that other processes still keep open."""
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
        """Write `given` to the process and read its output; return the outcome after its end."""
        moment = time.monotonic()
        self.deadline = math.inf if timeout is None else moment + timeout
        self.look_at = math.inf if may_wait else moment + LOOK_SECONDS
        process, stdout, stderr = self.child.process, BytesIO(), BytesIO()
        with self.selector, contextlib.ExitStack() as pipes:
            for pipe, kept in ((process.stdout, stdout), (process.stderr, stderr)):
                if pipe is not None:
                    if SET_PIPE_SIZE is not None:
                        with contextlib.suppress(OSError):  # the user's limit may be reached
                            fcntl.fcntl(pipe.fileno(), SET_PIPE_SIZE, PIPE_BYTES)
                    read = partial(self._read, pipes.enter_context(pipe), kept, kept is stdout)
                    self.selector.register(pipe, selectors.EVENT_READ, read)
            with contextlib.suppress(AttributeError, OSError):  # another system than Linux
                ending = os.pidfd_open(process.pid)
                pipes.callback(os.close, ending)
                stop = partial(self.selector.unregister, ending)
                self.selector.register(ending, selectors.EVENT_READ, stop)
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
        if code is None:  # even SIGKILL does not end the process at once
            code = -signal.SIGKILL
        left = self.child.finish() and not self.timed_out
        ended = (self.timed_out, self.is_cut, self.tail, self.passed, left, self.waited)
        return Finished(code, stdout.getvalue(), stderr.getvalue(), *ended)

    def _step(self) -> None:
        """Read and write the pipes, or wait for the end of the process; check the limits.

        A process that exceeds a limit is killed; its pipes are read for PATIENCE_SECONDS more.
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
                self.child.signal(signal.SIGTERM)
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
        """Return whether the process has opened a pipe or done nothing for WAITING_SECONDS."""
        states, used = _activity(self.child.process.pid)
        is_at_work = used != self.used or not STATES_AT_WORK.isdisjoint(states) or not states
        if is_at_work and not _opens_pipe(self.child.process.pid):
            self.look_at, self.used = moment + LOOK_SECONDS, used
        idle = moment - (self.look_at - LOOK_SECONDS)
        self.waited = bool(states) and idle >= WAITING_SECONDS
        return self.waited

    def _read(self, pipe: IO[bytes], kept: BytesIO, has_tail: bool) -> None:
        """Read from a pipe; pass the data to `take`, or keep what has room and the tail."""
        if self.reads > READS_AT_ONCE:
            time.sleep(GATHER_SECONDS)
        data = os.read(pipe.fileno(), PIPE_BYTES)
        self.reads += 1
        if self.take is not None:
            self.take(data)
        else:
            over = data[kept.write(data[: self.room - kept.tell()]) :]
            if over and self.cuts:
                self.is_cut = True
            elif over and has_tail:
                self.tail = (self.tail + over)[-TAIL_BYTES:]
                self.passed += len(over)
        if not data or self.is_cut:
            self.selector.unregister(pipe)
            pipe.close()

    def _write(self, pipe: IO[bytes], rest: BytesIO) -> None:
        """Write as much of the input as a pipe takes; close the pipe when all is written."""
        share = rest.getbuffer()[rest.tell() :][:SHARE_BYTES]
        try:
            rest.seek(os.write(pipe.fileno(), share), os.SEEK_CUR)
        except BrokenPipeError:
            rest.seek(0, os.SEEK_END)
        if rest.tell() == len(rest.getbuffer()):
            self.selector.unregister(pipe)
            pipe.close()


def _activity(process: int) -> tuple[set[str], int]:
    """Return the thread states and the processor time of a process; none and -1 if unknown."""
    try:
        threads = Path(f"/proc/{process}/task").iterdir()
        stats = [(thread / "stat").read_bytes().rpartition(b") ")[2].split() for thread in threads]
    except OSError:
        return set(), -1
    return {stat[0].decode() for stat in stats}, sum(int(s[11]) + int(s[12]) for s in stats)


def _opens_pipe(process: int) -> bool:
    """Return whether a thread of a process waits to open a pipe; its other threads may work."""
    try:
        threads = Path(f"/proc/{process}/task").iterdir()
        return any((thread / "wchan").read_text() == OPENING_PIPE for thread in threads)
    except OSError:
        return False
