"""Assemble pieces into the API's messages."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from efrit_budget.conversation.blocks import sendable_blocks, without_thinking
from efrit_budget.conversation.inputs import shortened
from efrit_budget.conversation.pieces import Content, Phase, Piece, PieceKey, PieceState
from efrit_budget.errors import JsonObject


@dataclass
class Assembly:
    """Collects messages; adjacent pieces of one role share a message."""

    first_place: int
    messages: list[JsonObject] = field(default_factory=list)
    places: dict[PieceKey, int] = field(default_factory=dict)
    """Maps the key of each piece to the number of the message that carries the piece."""

    def add(self, role: str, blocks: list[JsonObject], piece: Piece | None = None) -> None:
        """Append blocks to the last message if it has this role; system messages stay apart."""
        if blocks and self.messages and self.messages[-1]["role"] == role != "system":
            self.messages[-1]["content"].extend(blocks)
        elif blocks:
            self.messages.append({"role": role, "content": list(blocks)})
        if piece is not None:
            self.places[piece.key] = self.next_place - 1

    @property
    def next_place(self) -> int:
        """The number that the next message gets."""
        return self.first_place + len(self.messages)


def assemble(
    contents: Iterable[tuple[Piece, Content]], *, head: str | None = None, first_place: int = 0
) -> Assembly:
    """Return the messages of these pieces, with `head`, the lines of evicted turns, first."""
    assembly = Assembly(first_place)
    if head:
        assembly.add("user", [{"type": "text", "text": head}])
    for piece, content in contents:
        assembly.add(content.role, _current_blocks(piece, content), piece)
    return assembly


def _current_blocks(piece: Piece, content: Content) -> list[JsonObject]:
    """Return the blocks to send of a piece; a compressed reply is sent without its thinking."""
    if piece.phase is not Phase.REPLY:
        return content.blocks
    accepted = sendable_blocks(content.blocks)
    if piece.state is PieceState.SHORT:
        return shortened(accepted, piece.turn)
    return without_thinking(accepted) if piece.state is PieceState.COMPRESSED else accepted
