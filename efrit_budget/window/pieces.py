"""What a prompt is made of, as facts: pieces in their order, each with its cost."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum

from efrit_budget.errors import Json


class Phase(IntEnum):
    """The order of the pieces within a turn: asked, noticed, replied, results."""

    REQUEST = 0
    NOTICE = 1
    REPLY = 2
    RESULT = 3


class State(StrEnum):
    """How a piece stands in the window."""

    ANNOUNCED = "announced"
    """A tool use whose result is not there yet."""
    FULL = "full"
    COMPRESSED = "compressed"
    """A result shrunken to a line, a reply without its thinking."""
    GONE = "gone"


class Wish(StrEnum):
    """What a person changed since the last request: the next rewrite sees to it."""

    DROP = "drop"
    RESTORE = "restore"


Key = tuple[int, int, int]


@dataclass(frozen=True)
class Piece:
    """One piece of the prompt. Costs are in tokens, by the calibration in force."""

    turn: int
    phase: Phase
    ordinal: int
    state: State
    tokens: int
    """What it costs as it stands."""
    least: int
    """What it costs compressed."""
    last_use: int
    pinned: bool = False
    place: int | None = None
    """The number of the message that carries it; None until it is sent."""
    wish: Wish | None = None
    stands_on: frozenset[Key] | None = None
    """Of a line that says where its text stands in full: the pieces where it does."""

    @property
    def key(self) -> Key:
        """What orders and names it."""
        return self.turn, self.phase, self.ordinal

    @property
    def sent_state(self) -> State:
        """How it stood when it was sent, which a wish does not change."""
        was = {Wish.DROP: State.FULL, Wish.RESTORE: State.COMPRESSED}
        return self.state if self.wish is None else was[self.wish]


@dataclass(frozen=True)
class Content:
    """What a piece is in the API's terms."""

    role: str
    blocks: list[Json]
