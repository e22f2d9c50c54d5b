"""Two threads: one reports progress, one ends the process in time."""

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
"""How long a client that has closed its end may leave our output unread."""
STUCK_SECONDS = 60.0
"""How long the reader may be stuck in anything else then."""
PROGRESS_SECONDS = 0.2
LOG_SECONDS = 0.1


class Watchdog:
    """Ends the process when nobody is left to serve.

    It writes nothing to the protocol and waits for no lock of others, because it is what is left
    when every other thread is stuck in a pipe that nobody reads.
    """

    def __init__(self, streams: ProtocolStreams, leave: Callable[[], None]) -> None:
        self._streams = streams
        self._leave = leave
        self._last_sign = time.monotonic()
        self._deadline: float | None = None
        self._exit_code = 0

    def start(self, on_exit: Callable[[], None]) -> None:
        """Begin; `on_exit` is run before the process is ended by force."""
        watch = threading.Thread(target=self._watch, args=(on_exit,), name="watchdog", daemon=True)
        watch.start()

    def reader_is_alive(self) -> None:
        """Say that the reader has read something, or has dealt with a message."""
        self._last_sign = time.monotonic()

    def end_within(self, seconds: float, exit_code: int = 0) -> None:
        """Let the process live that long at most; an earlier deadline stands."""
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
    """Send what is to be said about long work from a thread, while the block runs."""
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
