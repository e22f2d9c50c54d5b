"""A session's window in the database."""

from __future__ import annotations

import sqlite3
from dataclasses import asdict, dataclass, fields, replace

from efrit_budget.budget.calibration import Calibration


@dataclass(frozen=True)
class Window:
    """The state of a window besides its pieces."""

    session_id: str
    clock: int = 0
    next_number: int = 1
    epoch: int = 0
    turn: int = 0
    turn_ended: int = 0
    next_place: int = 0
    model: str | None = None
    client_system: str | None = None
    registered: str = "[]"
    tool_set: str | None = None
    system: str | None = None
    tools: str | None = None
    system_raw: int = 0
    head: str | None = None
    head_raw: int = 0
    must_rewrite: int = 0
    """Whether the next request is to be a rewrite, whatever its size; see `CAME_BACK`."""
    noticed: int = 0
    band: str = "ample"
    warned: str = "ample"
    in_prompt: int = 0
    """The size of the prompt without the results of the turn in hand."""
    kept: int = 0
    """The same after a compaction."""
    least: int = 0
    """The same after everything that can give way has."""
    left_window: int | None = None
    """What had left the window when the epoch began; None until it is counted."""
    turn_tokens: int = 0
    """What the results of the turn in hand cost; all results where there are no turns."""


CAME_BACK = 2
"""Why it must: what had left is back, and stays so whatever else is wished."""
COLUMNS = tuple(field.name for field in fields(Window))


def load(connection: sqlite3.Connection, session_id: str) -> Window:
    """Return the window of a session, or a new one."""
    row = connection.execute("SELECT * FROM windows WHERE session_id = ?", (session_id,)).fetchone()
    return Window(session_id) if row is None else Window(**{name: row[name] for name in COLUMNS})


def save(connection: sqlite3.Connection, window: Window) -> None:
    """Keep a window."""
    names = ", ".join(COLUMNS)
    marks = ", ".join(f":{name}" for name in COLUMNS)
    connection.execute(
        f"INSERT OR REPLACE INTO windows ({names}) VALUES ({marks})",  # noqa: S608  own names
        asdict(window),
    )


def with_registered_tools(window: Window, tools: str) -> Window:
    """Return the window with other client tools."""
    return replace(window, registered=tools)


def save_use(
    connection: sqlite3.Connection,
    session_id: str,
    *,
    clock: int,
    next_number: int,
    turn_tokens: int,
) -> None:
    """Keep what a call changes of a window, and leave its long texts alone."""
    connection.execute(
        "INSERT INTO windows (session_id, clock, next_number, turn_tokens) VALUES (?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET clock = excluded.clock, next_number = excluded.next_number,"
        " turn_tokens = excluded.turn_tokens",
        (session_id, clock, next_number, turn_tokens),
    )


def calibration_of(connection: sqlite3.Connection, model: str, first: float) -> Calibration:
    """Return a model's calibration, or one with its first factor."""
    row = connection.execute("SELECT * FROM calibration WHERE model = ?", (model,)).fetchone()
    if row is None:
        return Calibration(first)
    return Calibration(row["factor"], row["samples"], row["error"], row["frame"])


def keep_calibration(connection: sqlite3.Connection, model: str, found: Calibration) -> None:
    """Remember what was learnt of a model."""
    connection.execute(
        "INSERT OR REPLACE INTO calibration (model, factor, samples, error, frame)"
        " VALUES (?, ?, ?, ?, ?)",
        (model, found.factor, found.samples, found.error, found.frame),
    )
