"""Worker threads in lanes, so that slow work waits only behind slow work.

Each lane has a backlog of limited size: while a backlog is full, nothing more is read from the
client.
"""

import threading
from collections.abc import Callable
from queue import SimpleQueue

Work = Callable[[], None]

MOST_WAITING = 1_024
"""How many requests may wait in a lane before the reader waits too."""
MOST_BYTES = 32 * 2**20
"""The most bytes that may wait in a lane; a longer message enters only an empty backlog."""
LOOK_SECONDS = 0.2
"""The seconds after which a thread that waits for room asks again whether to give up."""


class Backlog:
    """The waiting requests of a lane, limited by number and bytes."""

    def __init__(self, most: int = MOST_WAITING, most_bytes: int = MOST_BYTES) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._room = threading.Condition()
        self._waiting = 0
        self._bytes = 0

    def enter(self, size: int, give_up: Callable[[], bool]) -> bool:
        """Wait for room for a message of `size` bytes; return False if `give_up` ends the wait."""
        with self._room:
            while not self._has_room(size):
                if give_up():
                    return False
                self._room.wait(LOOK_SECONDS)
            self._waiting += 1
            self._bytes += size
        return True

    def leave(self, size: int) -> None:
        """Make room: a message of `size` bytes, which `enter` let in, waits no longer."""
        with self._room:
            self._waiting -= 1
            self._bytes -= size
            self._room.notify_all()

    def _has_room(self, size: int) -> bool:
        fits = self._waiting < self._most and self._bytes + size <= self._most_bytes
        return fits or not self._waiting


class WorkLane:
    """A queue with up to `size` daemon threads, started as needed."""

    def __init__(self, name: str, size: int, most_waiting: int = MOST_WAITING) -> None:
        self.backlog = Backlog(most_waiting)
        self._name = name
        self._size = size
        self._queue: SimpleQueue[Work | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._threads = 0
        self._unfinished = 0
        self._idle = threading.Condition(self._lock)

    def submit(self, work: Work) -> None:
        """Queue `work` for a thread of this lane; `work` must not raise."""
        with self._lock:
            self._unfinished += 1
            grow = self._threads < min(self._size, self._unfinished)
            self._threads += grow
        self._queue.put(work)
        if grow:
            self._grow()

    def wait_until_idle(self, seconds: float) -> bool:
        """Wait up to `seconds` for all submitted work to end; return whether it has ended."""
        with self._idle:
            return self._idle.wait_for(lambda: self._unfinished == 0, seconds)

    def close(self) -> None:
        """Let each thread end after the work that was submitted before."""
        with self._lock:
            for _ in range(self._threads):
                self._queue.put(None)

    def _grow(self) -> None:
        """Start a thread; if the system allows none and the lane has no other, work once here."""
        try:
            threading.Thread(target=self._serve, name=self._name, daemon=True).start()
        except RuntimeError:
            with self._lock:
                self._threads -= 1
                alone = self._threads == 0
            if alone:
                self._work_once()

    def _serve(self) -> None:
        while self._work_once():
            pass

    def _work_once(self) -> bool:
        """Do the next work of the queue; return False if the lane was closed instead."""
        work = self._queue.get()
        if work is None:
            return False
        work()
        with self._idle:
            self._unfinished -= 1
            if not self._unfinished:
                self._idle.notify_all()
        return True
