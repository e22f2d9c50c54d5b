"""The end of a model call: its reply is kept, counted, and its tool uses announced."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from efrit_budget.budget.calibration import ABSURD, output_size, true_prompt_size
from efrit_budget.errors import Json, field_error
from efrit_budget.window import record
from efrit_budget.window.blocks import block_estimate, sendable, without_thinking, written
from efrit_budget.window.frame import Bounds, least, used_now
from efrit_budget.window.pieces import Phase, Piece, State
from efrit_budget.window.plan import cost_in, plan
from efrit_budget.window.record import Window
from efrit_budget.window.uses import announce

LOST = "lost"
"""Under it, a stored usage block has those of attempts that broke off."""


@dataclass(frozen=True)
class Reply:
    """What came back from the model."""

    turn: int | None
    usage: Json
    content: list[dict[str, Json]]
    stop_reason: str | None
    aborted: bool
    lost: Sequence[Json] = ()
    """The usage blocks of attempts that broke off before this one."""

    def paid(self) -> Json:
        """All that this turn cost: its usage block, with those of the lost attempts in it."""
        if not self.lost:
            return self.usage
        own = self.usage if isinstance(self.usage, dict) else {}
        return {**own, LOST: list(self.lost)}


def usages(stored: Json) -> list[Json]:
    """Each usage block of a stored one: what the API counted for each attempt of a turn."""
    lost = stored.get(LOST) if isinstance(stored, dict) else None
    return [stored, *(lost if isinstance(lost, list) else [])]


@dataclass(frozen=True)
class Ended:
    """A turn as it ended, and what of its reply stands in the conversation."""

    window: Window
    bounds: Bounds
    turn: int
    messages: list[dict[str, Json]]


def end(connection: sqlite3.Connection, window: Window, reply: Reply, bounds: Bounds) -> Ended:
    """Keep the reply; told again of a turn that has ended, nothing changes."""
    turn = _turn(connection, window, reply)
    if turn["ended"] is None:
        bounds = _calibrated(connection, turn, reply, bounds)
        window = _kept(connection, window, turn["number"], reply, bounds)
        record.save(connection, window)
    messages = _appended(connection, window, turn["number"])
    return Ended(window, bounds, turn["number"], messages)


def _kept(
    connection: sqlite3.Connection, window: Window, turn: int, reply: Reply, bounds: Bounds
) -> Window:
    """The window with the reply; that of a turn which another has followed stays outside."""
    window = replace(window, clock=window.clock + 1)
    blocks = sendable(reply.content)
    if turn == window.turn:
        window = replace(window, turn_ended=turn)
        place = window.next_place if blocks else None
        announce(connection, window.session_id, turn, blocks)
    else:
        place = None
    if reply.content:
        _keep_reply(connection, window, turn, reply, place, bounds)
    if place is not None:
        window = replace(window, next_place=place + 1)
    connection.execute(
        "UPDATE turns SET ended = ?, aborted = ?, usage = ?, stop_reason = ?"
        " WHERE session_id = ? AND number = ?",
        (
            time.time(),
            reply.aborted,
            json.dumps(reply.paid()),
            reply.stop_reason,
            window.session_id,
            turn,
        ),
    )
    return measured(connection, window, bounds)


def _appended(connection: sqlite3.Connection, window: Window, turn: int) -> list[dict[str, Json]]:
    """What the client is to append: the reply as it stands in the conversation."""
    row = connection.execute(
        "SELECT content FROM segments WHERE session_id = ? AND turn = ? AND phase = ?"
        " AND state = ? AND place IS NOT NULL",
        (window.session_id, turn, Phase.REPLY, State.FULL),
    ).fetchone()
    if row is None or turn != window.turn:
        return []
    return [{"role": "assistant", "content": sendable(json.loads(row["content"]))}]


def measured(connection: sqlite3.Connection, window: Window, bounds: Bounds) -> Window:
    """The window with its sizes: as it stands, after a compaction, and at the least."""
    pieces = record.pieces(connection, window.session_id, bounds.calibration)
    before = [piece for piece in pieces if not _is_unsent(piece, window)]
    unsent = [piece for piece in pieces if _is_unsent(piece, window)]
    frame = bounds.frame(connection, window)
    return replace(
        window,
        in_prompt=sum(used_now(before, window, bounds).values()),
        kept=plan(before, frame, window.turn_ended).total,
        least=least(before, window, bounds),
        turn_tokens=_cost_of(unsent),
    )


def _is_unsent(piece: Piece, window: Window) -> bool:
    """Whether it is a result of the turn in hand."""
    return piece.turn == window.turn_ended and piece.phase is Phase.RESULT and piece.place is None


def _cost_of(pieces: Sequence[Piece]) -> int:
    return sum(cost_in(piece, piece.state) for piece in pieces)


def _turn(connection: sqlite3.Connection, window: Window, reply: Reply) -> sqlite3.Row:
    number = window.turn if reply.turn is None else reply.turn
    row: sqlite3.Row | None = connection.execute(
        "SELECT * FROM turns WHERE session_id = ? AND number = ?", (window.session_id, number)
    ).fetchone()
    if row is None:
        raise field_error("turn_id", f"no turn {number} has begun in this session")
    return row


def _calibrated(
    connection: sqlite3.Connection, turn: sqlite3.Row, reply: Reply, bounds: Bounds
) -> Bounds:
    """The bounds with what the usage block teaches; the thinking is known, not estimated."""
    size = true_prompt_size(reply.usage)
    if size is None:
        return bounds
    learnt = bounds.calibration.after(turn["raw"], turn["exact"], size)
    record.keep_calibration(connection, bounds.model.name, learnt)
    return replace(bounds, calibration=learnt)


def _keep_reply(
    connection: sqlite3.Connection,
    window: Window,
    turn: int,
    reply: Reply,
    place: int | None,
    bounds: Bounds,
) -> None:
    """The whole of it, and what of it stands in the conversation counted."""
    blocks = sendable(reply.content)
    raw = _estimated(blocks)
    connection.execute(
        "INSERT INTO segments (session_id, turn, phase, role, content, raw, bare_raw, exact,"
        " place, state, last_use) VALUES (?, ?, ?, 'assistant', ?, ?, ?, ?, ?, ?, ?)",
        (
            window.session_id,
            turn,
            Phase.REPLY,
            written(reply.content),
            raw,
            _estimated(without_thinking(blocks)),
            _exact(reply, raw, bounds) if blocks == reply.content else None,
            place,
            State.GONE if place is None else State.FULL,
            window.clock,
        ),
    )


def _exact(reply: Reply, raw: int, bounds: Bounds) -> int | None:
    """What the API counted, hidden thinking included; None where that cannot be true."""
    counted = output_size(reply.usage)
    most = max(bounds.limits.response, bounds.model.max_output, raw * ABSURD)
    return counted if counted is not None and raw / ABSURD <= counted <= most else None


def _estimated(blocks: Sequence[dict[str, Json]]) -> int:
    return sum(map(block_estimate, blocks))
