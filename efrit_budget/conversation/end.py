"""End a turn: store the reply and announce its tool calls."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, replace

from efrit_budget.budget.calibration import ABSURD, output_size
from efrit_budget.budget.tiers import Tier
from efrit_budget.conversation import segments, stored_pieces, turns, windows
from efrit_budget.conversation.blocks import (
    block_estimate,
    sendable_blocks,
    valid_json,
    without_thinking,
)
from efrit_budget.conversation.bounds import Bounds, least_prompt, used_by_tier
from efrit_budget.conversation.learning import learn
from efrit_budget.conversation.pieces import Phase, Piece, PieceState
from efrit_budget.conversation.plan import cost_in, plan
from efrit_budget.conversation.segments import Segment
from efrit_budget.conversation.tool_uses import announce
from efrit_budget.conversation.windows import Window
from efrit_budget.errors import Json, JsonObject, field_error

LOST = "lost"
"""Under it, a stored usage block has those of attempts that broke off."""


@dataclass(frozen=True)
class ModelReply:
    """The reply of the model."""

    turn: int | None
    usage: Json
    content: list[JsonObject]
    stop_reason: str | None
    aborted: bool
    lost: Sequence[Json] = ()
    """The usage blocks of attempts that broke off before this one."""

    def full_usage(self) -> Json:
        """Return the usage of this turn including lost attempts."""
        if not self.lost:
            return self.usage
        own = self.usage if isinstance(self.usage, dict) else {}
        return {**own, LOST: list(self.lost)}


def usage_blocks(stored: Json) -> list[Json]:
    """Return each usage block of a stored one, lost attempts included."""
    lost = stored.get(LOST) if isinstance(stored, dict) else None
    return [stored, *(lost if isinstance(lost, list) else [])]


@dataclass(frozen=True)
class EndedTurn:
    """A turn that has ended."""

    window: Window
    bounds: Bounds
    pieces: Sequence[Piece]
    turn: int
    messages: list[JsonObject]


def end(
    connection: sqlite3.Connection, window: Window, reply: ModelReply, bounds: Bounds
) -> EndedTurn:
    """Keep the reply; told again of a turn that has ended, nothing changes."""
    turn = _turn(connection, window, reply)
    has_ended = turn["ended"] is not None
    if not has_ended:
        window, bounds = learn(connection, window, turn, reply.usage, bounds)
        window = _store_reply(connection, window, turn["number"], reply, bounds)
    pieces = stored_pieces.load_pieces(connection, window.session_id, bounds.calibration)
    if not has_ended:
        window = measure(connection, window, pieces, bounds)
        windows.save(connection, window)
    messages = _messages_to_append(connection, window, turn["number"])
    return EndedTurn(window, bounds, pieces, turn["number"], messages)


def _store_reply(
    connection: sqlite3.Connection, window: Window, turn: int, reply: ModelReply, bounds: Bounds
) -> Window:
    """Store the reply; one of an earlier turn stays outside the window."""
    window = replace(window, clock=window.clock + 1)
    blocks = sendable_blocks(reply.content)
    if turn == window.turn:
        window = replace(window, turn_ended=turn)
        place = window.next_place if blocks else None
        announce(connection, window.session_id, turn, blocks)
    else:
        place = None
    if reply.content:
        _insert_reply(connection, window, turn, reply, place, bounds)
    if place is not None:
        window = replace(window, next_place=place + 1)
    turns.end(
        connection,
        window.session_id,
        turn,
        aborted=reply.aborted,
        usage=json.dumps(reply.full_usage()),
        stop_reason=reply.stop_reason,
    )
    return window


def _messages_to_append(
    connection: sqlite3.Connection, window: Window, turn: int
) -> list[JsonObject]:
    """Return the messages that the client appends."""
    row = segments.get(connection, window.session_id, turn, Phase.REPLY)
    is_sent = row is not None and row["state"] == PieceState.FULL and row["place"] is not None
    if row is None or not is_sent or turn != window.turn:
        return []
    return [{"role": "assistant", "content": sendable_blocks(json.loads(row["content"]))}]


def measure(
    connection: sqlite3.Connection, window: Window, pieces: Sequence[Piece], bounds: Bounds
) -> Window:
    """Return the window with its sizes now, after a rewrite, and at the least."""
    before = [piece for piece in pieces if not _is_unsent(piece, window)]
    unsent = [piece for piece in pieces if _is_unsent(piece, window)]
    frame = bounds.frame(connection, window)
    return replace(
        window,
        in_prompt=sum(used_by_tier(before, window, bounds).values()),
        kept=plan(before, frame, window.turn_ended).total,
        least=least_prompt(before, window, bounds),
        turn_tokens=_cost_of(unsent),
    )


def _is_unsent(piece: Piece, window: Window) -> bool:
    """Return whether a piece is a result of the current turn."""
    return piece.turn == window.turn_ended and piece.phase is Phase.RESULT and piece.place is None


def _cost_of(pieces: Sequence[Piece]) -> int:
    return sum(cost_in(piece, piece.state) for piece in pieces)


def _turn(connection: sqlite3.Connection, window: Window, reply: ModelReply) -> sqlite3.Row:
    number = window.turn if reply.turn is None else reply.turn
    row = turns.get(connection, window.session_id, number)
    if row is None:
        raise field_error("turn_id", f"no turn {number} has begun in this session")
    return row


def _insert_reply(
    connection: sqlite3.Connection,
    window: Window,
    turn: int,
    reply: ModelReply,
    place: int | None,
    bounds: Bounds,
) -> None:
    """Store the whole reply with the cost of what is sent back."""
    blocks = sendable_blocks(reply.content)
    raw = _estimate_blocks(blocks)
    segment = Segment(
        window.session_id,
        turn,
        Phase.REPLY,
        "assistant",
        valid_json(reply.content),
        raw,
        _estimate_blocks(without_thinking(blocks)),
        window.clock,
        exact=_reported_tokens(reply, raw, bounds) if blocks == reply.content else None,
        place=place,
        state=PieceState.GONE if place is None else PieceState.FULL,
    )
    segments.insert(connection, segment)


def _reported_tokens(reply: ModelReply, raw: int, bounds: Bounds) -> int | None:
    """Return the reported output tokens, or None if they are implausible."""
    counted = output_size(reply.usage)
    most = max(bounds.limits.of(Tier.RESPONSE), bounds.model.max_output, raw * ABSURD)
    return counted if counted is not None and raw / ABSURD <= counted <= most else None


def _estimate_blocks(blocks: Sequence[JsonObject]) -> int:
    return sum(map(block_estimate, blocks))
