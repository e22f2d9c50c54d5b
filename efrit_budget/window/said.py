"""What was said in a session, turn by turn, with what it costs and only how it begins."""

from __future__ import annotations

import sqlite3

from efrit_budget.budget.calibration import Calibration
from efrit_budget.errors import Json
from efrit_budget.window.pieces import Phase, State
from efrit_budget.window.record import Window

BEGINS = 200
"""How many characters of a text are told."""

TEXTS = (
    "SELECT substr(json_extract(value, '$.text'), 1, ?) FROM json_each(segments.content)"
    " WHERE json_extract(value, '$.type') = 'text'"
)
SAID = (
    "SELECT turn, phase, role, raw, bare_raw, exact, state, last_use,"  # noqa: S608  own words
    f" CASE phase WHEN 0 THEN ({TEXTS} ORDER BY key DESC LIMIT 1)"
    f" ELSE ({TEXTS} ORDER BY key LIMIT 1) END AS begins"
    " FROM segments WHERE session_id = ? ORDER BY turn, phase"
)
"""Of a request the last text is the person's own: what went with it stands before."""


def said(
    connection: sqlite3.Connection, window: Window, calibration: Calibration
) -> list[dict[str, Json]]:
    """The requests and replies in order, those that left the window too."""
    rows = connection.execute(SAID, (BEGINS, BEGINS, window.session_id)).fetchall()
    return [
        {
            "turn": row["turn"],
            "kind": Phase(row["phase"]).name.lower(),
            "role": row["role"],
            "state": row["state"],
            "tokens": _full(row, calibration),
            "tokens_now": _now(row, calibration),
            "age": window.clock - row["last_use"],
            "begins": row["begins"] or "",
        }
        for row in rows
    ]


def _full(row: sqlite3.Row, calibration: Calibration) -> int:
    """What it costs whole."""
    full: int = calibration.tokens(row["raw"]) if row["exact"] is None else row["exact"]
    return full


def _now(row: sqlite3.Row, calibration: Calibration) -> int:
    """What it costs as it stands in the window: nothing where it left that."""
    if row["state"] == State.GONE:
        return 0
    if row["state"] == State.COMPRESSED:
        return min(_full(row, calibration), calibration.tokens(row["bare_raw"]))
    return _full(row, calibration)
