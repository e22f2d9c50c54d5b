"""Tell running work that it was cancelled."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from efrit_budget.errors import CancelledError


@dataclass(eq=False)
class Cancellation:
    """A flag that is raised once, and the callbacks that stop the work at hand.

    A callback is run with the lock held, so none runs after its `calling` block has ended; it has
    to be quick.
    """

    cancelled: bool = False
    by_person: bool = False
    """Whether a person stopped it and wants the partial result."""
    _event: threading.Event = field(default_factory=threading.Event)
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _callbacks: list[Callable[[], object]] = field(default_factory=list)

    def cancel(self, *, by_person: bool = False) -> None:
        """Raise the flag and run the callbacks in force; the second time changes nothing."""
        with self._lock:
            if self.cancelled:
                return
            self.by_person, self.cancelled = by_person, True
            self._event.set()
            for callback in tuple(self._callbacks):
                callback()

    def check(self) -> None:
        """Raise `CancelledError` once the flag is up; long loops call this."""
        if self.cancelled:
            raise CancelledError

    def wait(self, seconds: float) -> bool:
        """Sleep, and wake at once when cancelled; true when cancelled."""
        return self._event.wait(seconds)

    @contextmanager
    def calling(self, callback: Callable[[], object]) -> Iterator[None]:
        """Run `callback` if the flag goes up inside the block, or is up already."""
        with self._lock:
            self._callbacks.append(callback)
            if self.cancelled:
                callback()
        try:
            yield
        finally:
            with self._lock:
                self._callbacks.remove(callback)
