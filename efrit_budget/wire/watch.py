"""Two threads: one reports progress, one ends a process that is abandoned or overdue."""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from efrit_budget.wire.requests import RequestTable
from efrit_budget.wire.stdio import ProtocolStreams

log = logging.getLogger(__name__)

WATCH_SECONDS = 0.1
STALLED_SECONDS = 0.4
"""The seconds that a write may wait for its reader once the client has closed our input."""
STUCK_SECONDS = 60.0
"""The seconds that the reader may show no sign of life once the client has closed our input."""
PROGRESS_SECONDS = 0.2
LOG_SECONDS = 0.1


class Watchdog:
    """Ends the process when its client is gone, or by force at a deadline.

    It writes nothing to the client and takes no lock of other threads, because it has to work
    when all of them are stuck in a pipe that nobody reads.
    """

    def __init__(self, streams: ProtocolStreams, leave: Callable[[], None]) -> None:
        self._streams = streams
        self._leave = leave
        self._last_sign = time.monotonic()
        self._deadline: float | None = None
        self._exit_code = 0

    def start(self, on_exit: Callable[[], None]) -> None:
        """Start the thread, which calls `on_exit` before it ends the process by force."""
        watch = threading.Thread(target=self._watch, args=(on_exit,), name="watchdog", daemon=True)
        watch.start()

    def reader_is_alive(self) -> None:
        """Record that the reading thread is not stuck at this moment."""
        self._last_sign = time.monotonic()

    def end_within(self, seconds: float, exit_code: int = 0) -> None:
        """End the process by force after `seconds`, or at an earlier deadline if there is one."""
        moment = time.monotonic() + seconds
        self._exit_code = exit_code
        self._deadline = moment if self._deadline is None else min(moment, self._deadline)

    def _watch(self, on_exit: Callable[[], None]) -> None:
        parent = os.getppid()
        while self._deadline is None or time.monotonic() < self._deadline:
            time.sleep(WATCH_SECONDS)
            if self._deadline is None and (os.getppid() != parent or self._abandoned()):
                self._leave()
        # Log from a thread of its own: standard error may be a pipe that nobody reads.
        message = "the work in hand did not end in time; leaving"
        writer = threading.Thread(target=log.warning, args=(message,), daemon=True)
        writer.start()
        writer.join(LOG_SECONDS)
        on_exit()
        os._exit(self._exit_code)

    def _abandoned(self) -> bool:
        stuck = time.monotonic() - self._last_sign > STUCK_SECONDS
        return (stuck or self._streams.stalled(STALLED_SECONDS)) and self._streams.hung_up()


@contextmanager
def passing_progress_on(table: RequestTable) -> Iterator[None]:
    """Send progress notifications of the table's requests from a thread, while the block runs."""
    stop = threading.Event()

    def repeat() -> None:
        while not stop.wait(PROGRESS_SECONDS):
            for job in table.all():
                job.say_progress()

    threading.Thread(target=repeat, name="progress", daemon=True).start()
    try:
        yield
    finally:
        stop.set()
