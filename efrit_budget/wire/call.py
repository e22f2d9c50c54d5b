"""The context of a request: its lane, cancellation and progress."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from efrit_budget.cancellation import Cancellation


class Lane(Enum):
    """The kind of thread that runs a method, so that slow work never delays quick replies."""

    ORDERED = "ordered"
    """Runs on the reading thread, and ends before the next message is parsed."""
    QUICK = "quick"
    """Only reads, and ends soon."""
    WRITING = "writing"
    """Writes to the database, and may have to wait for another sidecar's write."""
    SLOW = "slow"


@dataclass
class Progress:
    """The latest progress of a request."""

    message: str = ""
    done: int | None = None
    total: int | None = None
    output: Callable[[], str] | None = None
    """Returns the end of the output that the work has written so far."""

    def __call__(self, message: str, done: int | None = None, total: int | None = None) -> None:
        """Store the progress, which is sent to the client if the request takes long."""
        self.message, self.done, self.total = message, done, total

    def shows(self, output: Callable[[], str]) -> None:
        """Let progress notifications carry what `output` returns: the end of the work's output."""
        self.output = output


@dataclass(frozen=True)
class Call:
    """The context that a method receives with its params."""

    cancellation: Cancellation = field(default_factory=Cancellation)
    progress: Progress = field(default_factory=Progress)
    handover: Path | None = None
    """The folder in which the client leaves texts too long for a message; None without one."""
