"""Tell running work that it was cancelled."""

import threading
from dataclasses import dataclass, field

from efrit_budget.errors import CancelledError


@dataclass(eq=False)
class Cancellation:
    """A flag that is raised once; the work looks at it, or waits for it."""

    cancelled: bool = False
    by_person: bool = False
    """Whether a person stopped the work and wants the partial result."""
    _event: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def cancel(self, *, by_person: bool = False) -> None:
        """Raise the flag; do nothing if it is up already."""
        with self._lock:
            if self.cancelled:
                return
            self.by_person, self.cancelled = by_person, True
            self._event.set()

    def check(self) -> None:
        """Raise `CancelledError` once the flag is up; long loops call this."""
        if self.cancelled:
            raise CancelledError

    def wait(self, seconds: float) -> bool:
        """Sleep for some seconds or until the flag is up; return whether it is up."""
        return self._event.wait(seconds)
