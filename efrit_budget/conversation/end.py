"""End a turn: store the reply and announce its tool calls."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from sqlite3 import Connection, Row

from efrit_budget.budget.calibration import ABSURD, output_size
from efrit_budget.budget.tiers import Tier
from efrit_budget.conversation import segments, turns, windows
from efrit_budget.conversation.blocks import (
    block_estimate,
    sendable_blocks,
    valid_json,
    without_thinking,
)
from efrit_budget.conversation.bounds import Bounds
from efrit_budget.conversation.inputs import shortened
from efrit_budget.conversation.learning import learn
from efrit_budget.conversation.pieces import Phase, PieceState
from efrit_budget.conversation.segments import Segment
from efrit_budget.conversation.tool_uses import announce
from efrit_budget.conversation.uses import count_uses
from efrit_budget.conversation.window_state import WindowState, load_state
from efrit_budget.conversation.windows import Window
from efrit_budget.errors import Json, JsonObject, field_error

LOST = "lost"
"""The member of a stored usage block with the usage blocks of attempts that broke off."""


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
        """Return the usage block, with those of attempts that broke off as its member `lost`."""
        if not self.lost:
            return self.usage
        own = self.usage if isinstance(self.usage, dict) else {}
        return {**own, LOST: list(self.lost)}


def usage_blocks(stored: Json) -> list[Json]:
    """Return a stored usage block, and those of attempts that broke off, from its `lost`."""
    lost = stored.get(LOST) if isinstance(stored, dict) else None
    return [stored, *(lost if isinstance(lost, list) else [])]


@dataclass(frozen=True)
class EndedTurn:
    """A turn that has ended."""

    state: WindowState
    turn: int
    messages: list[JsonObject]
    """The messages that the client appends to its request."""


def end(
    connection: Connection, window: Window, reply: ModelReply, bounds: Bounds, now: float
) -> EndedTurn:
    """Store the reply of a turn; a turn that has ended already stays as it is."""
    turn = _get_turn(connection, window, reply)
    if turn["ended"] is None:
        window, bounds = learn(connection, window, turn, reply.usage, bounds)
        window = _store_reply(connection, window, turn["number"], reply, bounds)
        turns.end(
            connection,
            window.session_id,
            turn["number"],
            aborted=reply.aborted,
            usage=json.dumps(reply.full_usage()),
            stop_reason=reply.stop_reason,
            ended=now,
        )
    state = load_state(connection, window, bounds)
    if turn["ended"] is None:
        state = state.with_sizes(connection)
        windows.save(connection, state.window)
    messages = _messages_to_append(connection, window, turn["number"])
    return EndedTurn(state, turn["number"], messages)


def _get_turn(connection: Connection, window: Window, reply: ModelReply) -> Row:
    number = window.turn if reply.turn is None else reply.turn
    row = turns.get(connection, window.session_id, number)
    if row is None:
        raise field_error("turn_id", f"no turn {number} has begun in this session")
    return row


def _store_reply(
    connection: Connection, window: Window, turn: int, reply: ModelReply, bounds: Bounds
) -> Window:
    """Store the reply and return the window; a reply of an earlier turn stays out of the window."""
    window = replace(window, clock=window.clock + 1)
    blocks = sendable_blocks(reply.content)
    place = None
    if turn == window.turn:
        window = replace(window, turn_ended=turn)
        count_uses(connection, window.session_id, blocks, window.clock)
        announce(connection, window.session_id, turn, blocks)
        if blocks:
            place = window.next_place
            window = replace(window, next_place=place + 1)
    if reply.content:
        _insert_reply(connection, window, turn, reply, place, bounds)
    return window


def _insert_reply(
    connection: Connection,
    window: Window,
    turn: int,
    reply: ModelReply,
    place: int | None,
    bounds: Bounds,
) -> None:
    """Store the whole reply; its cost is that of the blocks that are sent back."""
    blocks = sendable_blocks(reply.content)
    raw, bare, short = (
        sum(block_estimate(block, bounds.family) for block in some)
        for some in (blocks, without_thinking(blocks), shortened(blocks, turn))
    )
    segment = Segment(
        window.session_id,
        turn,
        Phase.REPLY,
        "assistant",
        valid_json(reply.content),
        raw,
        bare,
        window.clock,
        short_raw=short if short < bare else None,
        exact=_reported_tokens(reply, raw, bounds) if blocks == reply.content else None,
        place=place,
        state=PieceState.GONE if place is None else PieceState.FULL,
    )
    segments.insert(connection, segment)


def _reported_tokens(reply: ModelReply, raw: int, bounds: Bounds) -> int | None:
    """Return the reported output tokens, or None if they are missing or implausible."""
    counted = output_size(reply.usage)
    most = max(bounds.limits.tiers[Tier.RESPONSE], bounds.model.max_output, raw * ABSURD)
    return counted if counted is not None and raw / ABSURD <= counted <= most else None


def _messages_to_append(connection: Connection, window: Window, turn: int) -> list[JsonObject]:
    """Return the reply as a message, if the turn is the latest and the window has it in full."""
    row = segments.get(connection, window.session_id, turn, Phase.REPLY)
    is_sent = row is not None and row["state"] == PieceState.FULL and row["place"] is not None
    if row is None or not is_sent or turn != window.turn:
        return []
    return [{"role": "assistant", "content": sendable_blocks(json.loads(row["content"]))}]
