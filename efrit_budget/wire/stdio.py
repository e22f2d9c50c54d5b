"""The two ends of a connection on standard input and output."""

from __future__ import annotations

import os
import select
import sys
import threading
import time
from contextlib import suppress

from efrit_budget.errors import EfritError

READ_BYTES = 256 * 1024
WRITE_BYTES = 64 * 1024
"""The most bytes of one write, so that a slow reader does not look like one that is gone."""


def take_standard_streams() -> ProtocolStreams:
    """Return streams of the process's stdin and stdout, which nothing else in it can use then.

    Descriptor 0 then reads the null device and descriptor 1 writes to standard error, so that
    neither a stray `print` nor a child process can put a byte into the protocol.
    """
    for stream, name in ((sys.__stdin__, "input"), (sys.__stdout__, "output")):
        if stream is None:  # it was closed when Python started
            raise EfritError(f"standard {name} is closed; start the sidecar with pipes for both")
    streams = ProtocolStreams(os.dup(0), os.dup(1))
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return streams


class ProtocolStreams:
    """Reads one descriptor and writes whole messages to another."""

    def __init__(self, reads: int, writes: int) -> None:
        self._input = reads
        self._output = writes
        self._wakes: tuple[int, int] | None = None
        self._lock = threading.Lock()
        self._closed = False
        self._writing_since: float | None = None

    def make_wakeable(self) -> int:
        """Return a descriptor for `signal.set_wakeup_fd`; a byte written to it ends `read`."""
        self._wakes = os.pipe()
        for end in self._wakes:
            os.set_blocking(end, False)
        return self._wakes[1]

    def read(self) -> bytes | None:
        """Return the next bytes: empty at the end of input, None if woken or if none are there."""
        if self._wakes is not None and self._wakes[0] in _wait(self._input, self._wakes[0]):
            os.read(self._wakes[0], 4096)
            return None
        try:
            return os.read(self._input, READ_BYTES)
        except BlockingIOError:  # the client has made the pipe that it shares with us non-blocking
            return None
        except OSError:  # the terminal is gone
            return b""

    def wake(self) -> None:
        """Make `read` return None; do nothing unless `make_wakeable` was called."""
        if self._wakes is not None:
            with suppress(BlockingIOError):  # the pipe is full, so `read` is woken anyway
                os.write(self._wakes[1], b"\0")

    def hung_up(self) -> bool:
        """Return whether every writer of standard input is gone."""
        poll = select.poll()
        poll.register(self._input, 0)
        return any(event & select.POLLHUP for _, event in poll.poll(0))

    def stalled(self, seconds: float) -> bool:
        """Return whether a write has waited for its reader for more than `seconds`."""
        since = self._writing_since
        return since is not None and time.monotonic() - since > seconds

    def write(self, data: bytes) -> None:
        """Write one whole message; do nothing once the reader is gone or the output is closed."""
        with self._lock:
            view = memoryview(data)
            while view and not self._closed:
                view = view[self._written(view) :]

    def close(self, seconds: float) -> None:
        """Close the output, after waiting up to `seconds` for a message that is being written."""
        whole = self._lock.acquire(timeout=seconds)
        self._closed = True
        if whole:
            self._lock.release()

    def _written(self, view: memoryview) -> int:
        self._writing_since = time.monotonic()
        try:
            return os.write(self._output, view[:WRITE_BYTES])
        except BlockingIOError:
            _wait(self._output, until=select.POLLOUT)
            return 0
        except OSError:
            self._closed = True
            return 0
        finally:
            self._writing_since = None


def _wait(*descriptors: int, until: int = select.POLLIN) -> list[int]:
    """Wait for the poll event `until` at a descriptor; return the descriptors with an event."""
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, until)
    return [descriptor for descriptor, _ in poll.poll()]
