"""The context of a request: its lane, cancellation and progress."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from efrit_budget.cancellation import Cancellation


class Lane(Enum):
    """The kind of thread that runs a method, so that slow work never delays quick replies."""

    ORDERED = "ordered"
    """On the reading thread: in force before the next message is looked at."""
    QUICK = "quick"
    """Reads, and soon has its answer."""
    WRITING = "writing"
    """Writes, and may have to wait for another sidecar that does."""
    SLOW = "slow"


@dataclass
class Progress:
    """The latest progress of a request."""

    message: str = ""
    done: int | None = None
    total: int | None = None
    output: Callable[[], str] | None = None
    """Gives the end of what the work has written so far."""

    def __call__(self, message: str, done: int | None = None, total: int | None = None) -> None:
        """Say how far the work is; the wire passes it on when the work takes long."""
        self.message, self.done, self.total = message, done, total

    def shows(self, output: Callable[[], str]) -> None:
        """Have the end of what the work writes be passed on while it runs."""
        self.output = output


@dataclass(frozen=True)
class Call:
    """The context that a method receives with its params."""

    cancellation: Cancellation = field(default_factory=Cancellation)
    progress: Progress = field(default_factory=Progress)
    handover: Path | None = None
    """The folder in which the client leaves texts that are long for a message."""
