"""Tell running work that it was cancelled."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from efrit_budget.errors import CancelledError


class Cancellation:
    """A flag that is raised once, and the callbacks that stop the work at hand.

    A callback is run with the lock held, so none runs once the block it was given for is left;
    it has to be quick.
    """

    def __init__(self) -> None:
        self._event = threading.Event()
        self._by_person = False
        self._lock = threading.RLock()
        self._callbacks: list[Callable[[], object]] = []

    @property
    def cancelled(self) -> bool:
        """Return whether the work was cancelled."""
        return self._event.is_set()

    @property
    def by_person(self) -> bool:
        """Return whether a person stopped it and wants the partial result."""
        return self._by_person

    def cancel(self, *, by_person: bool = False) -> None:
        """Raise the flag and run the callbacks in force; the second time changes nothing."""
        with self._lock:
            if self._event.is_set():
                return
            self._by_person = by_person
            self._event.set()
            for callback in tuple(self._callbacks):
                callback()

    def check(self) -> None:
        """Raise `CancelledError` once the flag is up; long loops call this."""
        if self._event.is_set():
            raise CancelledError

    def wait(self, seconds: float) -> bool:
        """Sleep, and wake at once when cancelled; true when cancelled."""
        return self._event.wait(seconds)

    @contextmanager
    def calling(self, callback: Callable[[], object]) -> Iterator[None]:
        """Run `callback` if the flag goes up inside the block, or is up already."""
        with self._lock:
            self._callbacks.append(callback)
            if self._event.is_set():
                callback()
        try:
            yield
        finally:
            with self._lock:
                self._callbacks.remove(callback)
