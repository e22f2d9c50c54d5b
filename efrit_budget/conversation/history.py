"""List the transcript of a session, and its turns with costs, evicted turns included."""

import json
from collections.abc import Iterator
from sqlite3 import Connection, Row

from efrit_budget.budget.calibration import Calibration
from efrit_budget.conversation import calls, segments, turns
from efrit_budget.conversation.pieces import Phase, PieceState
from efrit_budget.conversation.tool_uses import plain_id
from efrit_budget.conversation.windows import Window
from efrit_budget.errors import JsonObject
from efrit_budget.results.tokens import handle


def transcript(connection: Connection, session_id: str) -> Iterator[JsonObject]:
    """Yield all messages, notices, replies and results of a session, evicted ones included."""
    times = turns.list_times(connection, session_id)
    for row in segments.list_session(connection, session_id):
        turn = times[row["turn"]]
        yield {
            "turn": row["turn"],
            "kind": Phase(row["phase"]).name.lower(),
            "role": row["role"],
            "content": json.loads(row["content"]),
            "in_window": row["state"] != PieceState.GONE,
            "model": turn["model"],
            "begun": turn["begun"],
            "ended": turn["ended"],
        }
        if row["phase"] == Phase.REPLY:
            yield from _results_of(connection, session_id, row["turn"])
    yield from _results_of(connection, session_id, None)


def _results_of(connection: Connection, session_id: str, turn: int | None) -> Iterator[JsonObject]:
    """Yield the tool calls of a turn with their results; None selects calls without a turn."""
    for row in calls.list_turn(connection, session_id, turn):
        yield {
            "turn": turn,
            "kind": "result",
            "role": "user",
            "tool": row["tool"],
            "arguments": json.loads(row["arguments"]),
            "tool_use_id": plain_id(row["tool_use_id"]),
            "handle": handle(row["number"]) if row["number"] else None,
            "status": row["status"],
            "text": row["delivered"],
            "tokens": row["tokens"],
            "gist": row["gist"],
            "ending": row["ending"],
            "in_window": turn is not None
            and row["state"] in (PieceState.FULL, PieceState.COMPRESSED),
            "state": row["state"],
        }


def list_turns(
    connection: Connection, window: Window, calibration: Calibration
) -> list[JsonObject]:
    """Return the cost and beginning of each user message, notice and reply, also if evicted."""
    rows = segments.list_excerpts(connection, window.session_id)
    return [
        {
            "turn": row["turn"],
            "kind": Phase(row["phase"]).name.lower(),
            "role": row["role"],
            "state": row["state"],
            "tokens": _full_tokens(row, calibration),
            "tokens_now": _current_tokens(row, calibration),
            "age": window.clock - row["last_use"],
            "begins": row["begins"] or "",
        }
        for row in rows
    ]


def _full_tokens(row: Row, calibration: Calibration) -> int:
    """Return the tokens that a message or reply costs in full."""
    full: int = calibration.tokens(row["raw"]) if row["exact"] is None else row["exact"]
    return full


def _current_tokens(row: Row, calibration: Calibration) -> int:
    """Return the tokens that a message or reply costs in the window now, 0 if it is evicted."""
    if row["state"] == PieceState.GONE:
        return 0
    if row["state"] == PieceState.SHORT:
        return min(_full_tokens(row, calibration), calibration.tokens(row["short_raw"]))
    if row["state"] == PieceState.COMPRESSED:
        return min(_full_tokens(row, calibration), calibration.tokens(row["bare_raw"]))
    return _full_tokens(row, calibration)
