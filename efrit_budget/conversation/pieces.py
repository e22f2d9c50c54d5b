"""The pieces of a prompt, in order, with their costs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum, StrEnum

from efrit_budget.errors import JsonObject


class Phase(IntEnum):
    """The kinds of pieces, in their order within a turn."""

    REQUEST = 0
    NOTICE = 1
    REPLY = 2
    RESULT = 3


class PieceState(StrEnum):
    """The state of a piece in the window."""

    ANNOUNCED = "announced"
    """A tool use that has no result yet."""
    FULL = "full"
    COMPRESSED = "compressed"
    """A result as one line, or a reply without its thinking."""
    SHORT = "short"
    """A reply without its thinking and without the long texts of its tool uses' inputs."""
    GONE = "gone"


class UserEdit(StrEnum):
    """A user edit that the next rewrite applies."""

    DROP = "drop"
    RESTORE = "restore"


PieceKey = tuple[int, int, int]


@dataclass(frozen=True)
class Piece:
    """One piece of the prompt; costs are in calibrated tokens."""

    turn: int
    phase: Phase
    ordinal: int
    state: PieceState
    tokens: int
    """The cost of the piece in full."""
    least: int
    """The cost of the piece when it is compressed."""
    last_use: int
    shortest: int | None = None
    """The cost of a reply when its long inputs are shortened, too; None if it has none."""
    pinned: bool = False
    place: int | None = None
    """The number of the message that carries the piece; None until the piece is sent."""
    wish: UserEdit | None = None
    full_copies: frozenset[PieceKey] | None = None
    """The keys of the pieces that show the text of this "Same as" line; None for other pieces."""

    @property
    def key(self) -> PieceKey:
        """Turn, phase and ordinal, which identify the piece and order it among others."""
        return self.turn, self.phase, self.ordinal

    @property
    def sent_state(self) -> PieceState:
        """The state in which the piece was sent, before a user edit that is not applied yet."""
        was = {UserEdit.DROP: PieceState.FULL, UserEdit.RESTORE: PieceState.COMPRESSED}
        return self.state if self.wish is None else was[self.wish]


def with_states(pieces: Iterable[Piece], states: Mapping[PieceKey, PieceState]) -> list[Piece]:
    """Return the pieces in the states that `states` maps their keys to, without evicted ones."""
    changed = (replace(piece, state=states.get(piece.key, piece.state)) for piece in pieces)
    return [piece for piece in changed if piece.state is not PieceState.GONE]


@dataclass(frozen=True)
class Content:
    """The role and the content blocks with which a piece is sent to the API."""

    role: str
    blocks: list[JsonObject]
