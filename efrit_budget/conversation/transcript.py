"""Everything that was said in a session, evicted turns included."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator

from efrit_budget.conversation import calls, segments
from efrit_budget.conversation.pieces import Phase, PieceState
from efrit_budget.conversation.tool_uses import plain_id
from efrit_budget.errors import JsonObject


def transcript(connection: sqlite3.Connection, session_id: str) -> Iterator[JsonObject]:
    for row in segments.of_session(connection, session_id):
        entry = {
            "turn": row["turn"],
            "kind": Phase(row["phase"]).name.lower(),
            "role": row["role"],
            "content": json.loads(row["content"]),
            "in_window": row["state"] != PieceState.GONE,
        }
        yield entry
        if row["phase"] == Phase.REPLY:
            yield from _results_of(connection, session_id, row["turn"])
    yield from _results_of(connection, session_id, None)


def _results_of(
    connection: sqlite3.Connection, session_id: str, turn: int | None
) -> Iterator[JsonObject]:
    """Yield the results of a turn; None selects results without a turn."""
    for row in calls.of_turn(connection, session_id, turn):
        yield {
            "turn": turn,
            "kind": "result",
            "role": "user",
            "tool": row["tool"],
            "arguments": json.loads(row["arguments"]),
            "tool_use_id": plain_id(row["tool_use_id"]),
            "handle": f"r{row['number']}" if row["number"] else None,
            "status": row["status"],
            "text": row["delivered"],
            "tokens": row["tokens"],
            "in_window": turn is not None
            and row["state"] in (PieceState.FULL, PieceState.COMPRESSED),
            "state": row["state"],
        }
