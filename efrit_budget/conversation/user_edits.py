"""User edits of the window: list, show, pin, unpin, drop and restore."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence

from efrit_budget.budget.calibration import Calibration
from efrit_budget.conversation import calls, segments
from efrit_budget.conversation.bounds import Bounds
from efrit_budget.conversation.conversation import Conversation
from efrit_budget.conversation.pieces import PieceState, UserEdit
from efrit_budget.conversation.tool_uses import plain_id
from efrit_budget.conversation.windows import Window, load
from efrit_budget.errors import ConflictError, Json
from efrit_budget.results import store as results
from efrit_budget.results.tokens import TokenError, handle
from efrit_budget.sessions.store import Session
from efrit_budget.storage.database import Database

IN_FULL = "(state = 'full')"
WITH_TEXT = "(same_as IS NULL)"

Change = Callable[[sqlite3.Connection, sqlite3.Row], bool]
"""Changes an entry, and says whether something comes back that had left what was sent."""


class UserEdits:
    """Applies user edits; the next turn rewrites the window."""

    def __init__(self, database: Database, conversation: Conversation) -> None:
        self._database = database
        self._conversation = conversation

    def list(
        self, session: Session, states: Sequence[str] | None, offset: int, limit: int
    ) -> dict[str, Json]:
        """Return the entries, newest first."""
        with self._database.reading() as connection:
            total, rows = calls.list_page(connection, session.id, states, offset, limit)
            window, bounds = self._conversation.load(connection, session)
        entries = [_present_entry(row, window, bounds) for row in rows]
        return {"entries": entries, "total": total, "returned": len(entries), "offset": offset}

    def show(self, session: Session, number: int, most: int | None) -> dict[str, Json]:
        """Return an entry with up to `most` characters of its text, without counting a use."""
        with self._database.reading() as connection:
            row = _row(connection, session, number, WITH_TEXT)
            text = results.get(connection, session.id, number).text
            window, bounds = self._conversation.load(connection, session)
        return {
            **_present_entry(row, window, bounds),
            "delivered": row["delivered"],
            "text": text[:most],
            "characters": len(text),
        }

    def pin(self, session: Session, number: int) -> dict[str, Json]:
        """Keep an entry in full through compactions; refused past half of the results' tier."""

        def change(connection: sqlite3.Connection, row: sqlite3.Row) -> bool:
            pinned = calls.pinned_tokens(connection, session.id, row["tool_use_id"])
            most = session.limits.tool_results // 2
            if pinned + row["tokens"] > most:
                raise ConflictError(
                    f"{handle(row['number'])} has {row['tokens']:,} tokens and {pinned:,} are "
                    f"pinned already; at most {most:,}, half of the results' tier, can be"
                )
            calls.update(connection, row, pinned=1)
            return False

        return self._apply_edit(session, number, change, IN_FULL, shows_text=True)

    def unpin(self, session: Session, number: int) -> dict[str, Json]:
        """Let an entry give way again."""

        def change(connection: sqlite3.Connection, row: sqlite3.Row) -> bool:
            calls.update(connection, row, pinned=0)
            return False

        return self._apply_edit(session, number, change, "pinned = 1")

    def drop(self, session: Session, number: int) -> dict[str, Json]:
        """Shrink an entry to its line."""

        def change(connection: sqlite3.Connection, row: sqlite3.Row) -> bool:
            calls.update(connection, row, pinned=0)
            if row["state"] != PieceState.FULL:
                return False
            wish = None if row["wish"] == UserEdit.RESTORE else UserEdit.DROP
            calls.update(connection, row, state=PieceState.COMPRESSED, wish=wish)
            return False

        return self._apply_edit(session, number, change, IN_FULL)

    def restore(self, session: Session, number: int) -> dict[str, Json]:
        """Bring an entry back in full, with the turn it belongs to."""

        def change(connection: sqlite3.Connection, row: sqlite3.Row) -> bool:
            clock = load(connection, session.id).clock
            calls.update(connection, row, last_use=clock)
            if row["state"] == PieceState.FULL:
                return False
            if row["turn"] is None:
                name = handle(row["number"])
                raise ConflictError(
                    f"{name} never stood in the conversation; recall_result {name} brings it"
                )
            wish = None if row["wish"] == UserEdit.DROP else UserEdit.RESTORE
            calls.update(connection, row, state=PieceState.FULL, wish=wish)
            _restore_turn(connection, row, clock)
            return bool(row["state"] == PieceState.GONE)

        return self._apply_edit(session, number, change, f"NOT {IN_FULL}", shows_text=True)

    def _apply_edit(
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
            if row["turn"] is None:
                state = self._conversation.state(connection, session)
            else:
                state = self._conversation.measure_again(connection, session, comes_back=comes_back)
            entry = _present_entry(_row_of(connection, row), state.window, state.bounds)
        return {"entry": entry, "budget": state.snapshot()}


def _row_of(connection: sqlite3.Connection, row: sqlite3.Row) -> sqlite3.Row:
    """Return a row as it is now."""
    return calls.get(connection, row["session_id"], row["tool_use_id"]) or row


def _row(
    connection: sqlite3.Connection, session: Session, number: int, preferred: str
) -> sqlite3.Row:
    row = calls.with_number(connection, session.id, number, preferred)
    if row is None:
        raise TokenError(f"this session has no entry {handle(number)}")
    return row


def _restore_turn(connection: sqlite3.Connection, row: sqlite3.Row, clock: int) -> None:
    """Restore the reply of a call, and its other calls in compressed form."""
    segments.restore_reply(connection, row["session_id"], row["turn"], clock)
    calls.restore_turn(connection, row["session_id"], row["turn"])


def _present_entry(row: sqlite3.Row, window: Window, bounds: Bounds) -> dict[str, Json]:
    """Return an entry as the budget view shows it."""
    return {
        "handle": handle(row["number"]) if row["number"] else None,
        "tool_use_id": plain_id(row["tool_use_id"]),
        "tool": row["tool"],
        "arguments": json.loads(row["arguments"]),
        "status": row["status"],
        "state": row["state"],
        "pinned": bool(row["pinned"]),
        "tokens": row["tokens"],
        "tokens_now": _tokens_now(row, bounds.calibration),
        "compressed": row["compressed"],
        "turn": row["turn"],
        "ended": row["ended"],
        "age": window.clock - row["last_use"],
        "lisp": row["lisp"],
        "todos": json.loads(row["todos"]) if row["todos"] else None,
    }


def _tokens_now(row: sqlite3.Row, calibration: Calibration) -> int:
    """Return an entry's current cost in the window, 0 before its end."""
    if row["turn"] is None or row["state"] not in (PieceState.FULL, PieceState.COMPRESSED):
        return 0
    if row["state"] == PieceState.COMPRESSED:
        return calibration.tokens(row["compressed_raw"])
    full: int = max(row["tokens"] or 0, calibration.tokens(row["raw"]) + row["exact"])
    return full
