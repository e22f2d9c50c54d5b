"""Tell running work that it was cancelled."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from efrit_budget.errors import CancelledError


@dataclass(eq=False)
class Cancellation:
    """A flag that is raised once, and the callbacks that then stop the work.

    A callback has to be quick: it runs with the lock held, so that none runs after its `calling`
    block has ended.
    """

    cancelled: bool = False
    by_person: bool = False
    """Whether a person stopped the work and wants the partial result."""
    _event: threading.Event = field(default_factory=threading.Event)
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _callbacks: list[Callable[[], object]] = field(default_factory=list)

    def cancel(self, *, by_person: bool = False) -> None:
        """Raise the flag and run all callbacks; do nothing if the flag is up already."""
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
        """Sleep for some seconds or until the flag is up; return whether it is up."""
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
