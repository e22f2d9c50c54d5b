"""Worker threads, in lanes: what is slow waits behind what is slow, never in front of the quick."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue

Work = Callable[[], None]


class WorkLane:
    """A queue and up to `size` daemon threads, each started when it is first needed."""

    def __init__(self, name: str, size: int) -> None:
        self._name = name
        self._size = size
        self._queue: SimpleQueue[Work | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._threads = 0
        self._unfinished = 0
        self._idle = threading.Condition(self._lock)

    def submit(self, work: Work) -> None:
        """Have `work` run soon; it must not raise."""
        with self._lock:
            self._unfinished += 1
            grow = self._threads < min(self._size, self._unfinished)
            self._threads += grow
        self._queue.put(work)
        if grow:
            self._grow()

    def wait_until_idle(self, seconds: float) -> bool:
        """Wait for all that was submitted; false when the time ran out first."""
        with self._idle:
            return self._idle.wait_for(lambda: self._unfinished == 0, seconds)

    def close(self) -> None:
        """Let each thread end once it has done what was submitted before."""
        with self._lock:
            for _ in range(self._threads):
                self._queue.put(None)

    def _grow(self) -> None:
        """Start a thread; where the system gives none, those there are have to do."""
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
        """Do the next piece of work; return false where the lane is closed instead."""
        work = self._queue.get()
        if work is None:
            return False
        work()
        with self._idle:
            self._unfinished -= 1
            if not self._unfinished:
                self._idle.notify_all()
        return True
