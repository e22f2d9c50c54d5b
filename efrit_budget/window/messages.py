"""From pieces to the API's messages, and which message carries which piece."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from efrit_budget.errors import Json
from efrit_budget.window.blocks import sendable, without_thinking
from efrit_budget.window.pieces import Content, Phase, Piece, State


@dataclass
class Assembly:
    """Messages as they grow; pieces of the same role that follow each other share one."""

    first_place: int
    messages: list[dict[str, Json]] = field(default_factory=list)
    places: list[tuple[Piece, int]] = field(default_factory=list)

    def add(self, role: str, blocks: list[Json], piece: Piece | None = None) -> None:
        """Put blocks behind what is there."""
        if blocks and self.messages and self.messages[-1]["role"] == role != "system":
            self.messages[-1]["content"].extend(blocks)
        elif blocks:
            self.messages.append({"role": role, "content": list(blocks)})
        if piece is not None:
            self.places.append((piece, self.first_place + len(self.messages) - 1))

    @property
    def next_place(self) -> int:
        """The number of the message that would come next."""
        return self.first_place + len(self.messages)


def assemble(
    contents: Iterable[tuple[Piece, Content]], *, head: str | None = None, first_place: int = 0
) -> Assembly:
    """The messages of these pieces; the head stands first in the first message, the person's."""
    assembly = Assembly(first_place)
    if head:
        assembly.add("user", [{"type": "text", "text": head}])
    for piece, content in contents:
        assembly.add(content.role, _standing(piece, content), piece)
    return assembly


def _standing(piece: Piece, content: Content) -> list[Json]:
    """A reply that lived through a rewrite has lost its thinking."""
    if piece.phase is not Phase.REPLY:
        return content.blocks
    kept = sendable(content.blocks)
    return without_thinking(kept) if piece.state is State.COMPRESSED else kept
