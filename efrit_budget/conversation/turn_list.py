"""List the messages and replies of a session with their costs."""

from __future__ import annotations

import sqlite3

from efrit_budget.budget.calibration import Calibration
from efrit_budget.conversation import segments
from efrit_budget.conversation.pieces import Phase, PieceState
from efrit_budget.conversation.windows import Window
from efrit_budget.errors import JsonObject


def list_turns(
    connection: sqlite3.Connection, window: Window, calibration: Calibration
) -> list[JsonObject]:
    """Return messages and replies in order, evicted ones included."""
    rows = segments.excerpts(connection, window.session_id)
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


def _full_tokens(row: sqlite3.Row, calibration: Calibration) -> int:
    """Return the full cost of a row."""
    full: int = calibration.tokens(row["raw"]) if row["exact"] is None else row["exact"]
    return full


def _current_tokens(row: sqlite3.Row, calibration: Calibration) -> int:
    """Return the cost of a row as it is in the window, 0 if evicted."""
    if row["state"] == PieceState.GONE:
        return 0
    if row["state"] == PieceState.COMPRESSED:
        return min(_full_tokens(row, calibration), calibration.tokens(row["bare_raw"]))
    return _full_tokens(row, calibration)
