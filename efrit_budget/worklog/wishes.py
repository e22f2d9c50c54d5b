"""What a person does to the entries of a window: list, show, pin, unpin, drop, restore."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence

from efrit_budget.budget.calibration import Calibration
from efrit_budget.errors import ConflictError, Json
from efrit_budget.results import store as results
from efrit_budget.results.tokens import TokenError, handle
from efrit_budget.sessions.store import Session
from efrit_budget.storage.database import Database
from efrit_budget.window.pieces import State, Wish
from efrit_budget.window.record import load
from efrit_budget.window.turns import Turns
from efrit_budget.window.uses import plain_id

IN_FULL = "(state = 'full')"
WITH_TEXT = "(same_as IS NULL)"

Change = Callable[[sqlite3.Connection, sqlite3.Row], bool]
"""Changes an entry, and says whether something comes back that had left what was sent."""
Shows = Callable[[sqlite3.Row], dict[str, Json]]


class Wishes:
    """Changes how entries stand; the next turn sees to it in one rewrite."""

    def __init__(self, database: Database, turns: Turns) -> None:
        self._database = database
        self._turns = turns

    def list(
        self, session: Session, states: Sequence[str] | None, offset: int, limit: int
    ) -> dict[str, Json]:
        """The entries, the newest first."""
        where, values = "session_id = ?", [session.id]
        if states:
            where += " AND state IN (SELECT value FROM json_each(?))"
            values.append(json.dumps(list(states)))
        with self._database.reading() as connection:
            total = connection.execute(
                f"SELECT count(*) FROM calls WHERE {where}",  # noqa: S608  own words
                values,
            ).fetchone()[0]
            rows = connection.execute(
                f"SELECT * FROM calls WHERE {where}"  # noqa: S608  own words
                " ORDER BY ended IS NULL DESC, ended DESC, number DESC, turn DESC, ordinal DESC"
                " LIMIT ? OFFSET ?",
                (*values, limit, offset),
            ).fetchall()
            shows = self._shows(connection, session)
        shown = [shows(row) for row in rows]
        return {"entries": shown, "total": total, "returned": len(shown), "offset": offset}

    def show(self, session: Session, number: int, most: int | None) -> dict[str, Json]:
        """An entry with the text that is stored, `most` characters of it; no use is counted."""
        with self._database.reading() as connection:
            row = _row(connection, session, number, WITH_TEXT)
            text = results.get(connection, session.id, number).text
            shows = self._shows(connection, session)
        return {
            **shows(row),
            "delivered": row["delivered"],
            "text": text[:most],
            "characters": len(text),
        }

    def pin(self, session: Session, number: int) -> dict[str, Json]:
        """Keep an entry in full through compactions; refused past half of the results' tier."""

        def change(connection: sqlite3.Connection, row: sqlite3.Row) -> bool:
            pinned = connection.execute(
                "SELECT coalesce(sum(tokens), 0) FROM calls WHERE session_id = ? AND pinned = 1"
                " AND tool_use_id <> ?",
                (session.id, row["tool_use_id"]),
            ).fetchone()[0]
            most = session.limits.tool_results // 2
            if pinned + row["tokens"] > most:
                raise ConflictError(
                    f"{handle(row['number'])} has {row['tokens']:,} tokens and {pinned:,} are "
                    f"pinned already; at most {most:,}, half of the results' tier, can be"
                )
            _set(connection, row, "pinned = 1")
            return False

        return self._changed(session, number, change, IN_FULL, shows_text=True)

    def unpin(self, session: Session, number: int) -> dict[str, Json]:
        """Let an entry give way again."""

        def change(connection: sqlite3.Connection, row: sqlite3.Row) -> bool:
            _set(connection, row, "pinned = 0")
            return False

        return self._changed(session, number, change, "pinned = 1")

    def drop(self, session: Session, number: int) -> dict[str, Json]:
        """Shrink an entry to its line."""

        def change(connection: sqlite3.Connection, row: sqlite3.Row) -> bool:
            _set(connection, row, "pinned = 0")
            if row["state"] != State.FULL:
                return False
            wish = None if row["wish"] == Wish.RESTORE else Wish.DROP
            _set(connection, row, "state = 'compressed', wish = ?", wish)
            return False

        return self._changed(session, number, change, IN_FULL)

    def restore(self, session: Session, number: int) -> dict[str, Json]:
        """Bring an entry back in full, with the turn it belongs to."""

        def change(connection: sqlite3.Connection, row: sqlite3.Row) -> bool:
            clock = load(connection, session.id).clock
            _set(connection, row, "last_use = ?", clock)
            if row["state"] == State.FULL:
                return False
            if row["turn"] is None:
                name = handle(row["number"])
                raise ConflictError(
                    f"{name} never stood in the conversation; recall_result {name} brings it"
                )
            wish = None if row["wish"] == Wish.DROP else Wish.RESTORE
            _set(connection, row, "state = 'full', wish = ?", wish)
            _bring_back_the_turn(connection, row, clock)
            return bool(row["state"] == State.GONE)

        return self._changed(session, number, change, f"NOT {IN_FULL}", shows_text=True)

    def _changed(
        self,
        session: Session,
        number: int,
        change: Change,
        preferred: str,
        *,
        shows_text: bool = False,
    ) -> dict[str, Json]:
        """Change an entry of a handle; where there are several, one that there is something for.

        Where the wish is for the text, and the entry only says where that stands, it is that
        entry's.
        """
        with self._database.writing() as connection:
            row = _row(connection, session, number, preferred)
            if shows_text and row["same_as"] is not None:
                row = _row(connection, session, row["same_as"], f"{WITH_TEXT} DESC, {preferred}")
            comes_back = change(connection, row)
            if row["turn"] is not None:
                self._turns.remeasure(connection, session, comes_back=comes_back)
            changed = _again(connection, row)
            shows = self._shows(connection, session)
        return {"entry": shows(changed), "budget": self._turns.budget(session)}

    def _shows(self, connection: sqlite3.Connection, session: Session) -> Shows:
        """What shows an entry as it stands in the window of now."""
        clock = load(connection, session.id).clock
        calibration = self._turns.calibration(connection, session)
        return lambda row: _shown(row, clock, calibration)


def _row(
    connection: sqlite3.Connection, session: Session, number: int, preferred: str
) -> sqlite3.Row:
    row: sqlite3.Row | None = connection.execute(
        "SELECT * FROM calls WHERE session_id = ? AND number = ?"  # noqa: S608  own words
        f" ORDER BY {preferred} DESC, last_use DESC, ended DESC LIMIT 1",
        (session.id, number),
    ).fetchone()
    if row is None:
        raise TokenError(f"this session has no entry {handle(number)}")
    return row


def _again(connection: sqlite3.Connection, row: sqlite3.Row) -> sqlite3.Row:
    found: sqlite3.Row = connection.execute(
        "SELECT * FROM calls WHERE session_id = ? AND tool_use_id = ?",
        (row["session_id"], row["tool_use_id"]),
    ).fetchone()
    return found


def _set(connection: sqlite3.Connection, row: sqlite3.Row, what: str, *values: Json) -> None:
    connection.execute(
        f"UPDATE calls SET {what} WHERE session_id = ? AND tool_use_id = ?",  # noqa: S608
        (*values, row["session_id"], row["tool_use_id"]),
    )


def _bring_back_the_turn(connection: sqlite3.Connection, row: sqlite3.Row, clock: int) -> None:
    """The reply that made the call, and what else it called, shrunk."""
    connection.execute(
        "UPDATE segments SET state = 'compressed', last_use = ? WHERE session_id = ?"
        " AND turn = ? AND phase = 2 AND state = 'gone'",
        (clock, row["session_id"], row["turn"]),
    )
    connection.execute(
        "UPDATE calls SET state = 'compressed' WHERE session_id = ? AND turn = ?"
        " AND state = 'gone'",
        (row["session_id"], row["turn"]),
    )


def _shown(row: sqlite3.Row, clock: int, calibration: Calibration) -> dict[str, Json]:
    """An entry as the budget view shows it."""
    return {
        "handle": handle(row["number"]) if row["number"] else None,
        "tool_use_id": plain_id(row["tool_use_id"]),
        "tool": row["tool"],
        "arguments": json.loads(row["arguments"]),
        "status": row["status"],
        "state": row["state"],
        "pinned": bool(row["pinned"]),
        "tokens": row["tokens"],
        "tokens_now": _tokens_now(row, calibration),
        "compressed": row["compressed"],
        "turn": row["turn"],
        "ended": row["ended"],
        "age": clock - row["last_use"],
        "lisp": row["lisp"],
        "todos": json.loads(row["todos"]) if row["todos"] else None,
    }


def _tokens_now(row: sqlite3.Row, calibration: Calibration) -> int:
    """What an entry costs in the window as it stands there; nothing before its end."""
    if row["turn"] is None or row["state"] not in (State.FULL, State.COMPRESSED):
        return 0
    if row["state"] == State.COMPRESSED:
        return calibration.tokens(row["compressed_raw"])
    return row["tokens"] or 0
