"""User edits of the window: list, show, pin, unpin, drop and restore."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from sqlite3 import Connection, Row

from efrit_budget.budget.calibration import Calibration
from efrit_budget.budget.tiers import Tier
from efrit_budget.conversation import calls, segments, windows
from efrit_budget.conversation.bounds import Bounds
from efrit_budget.conversation.conversation import Conversation, measure_again
from efrit_budget.conversation.pieces import PieceState, UserEdit
from efrit_budget.conversation.recall import call_facts
from efrit_budget.conversation.tool_uses import plain_id
from efrit_budget.conversation.window_state import load_state
from efrit_budget.conversation.windows import Window
from efrit_budget.errors import ConflictError, JsonObject
from efrit_budget.results import store as results
from efrit_budget.results.tokens import TokenError, handle
from efrit_budget.sessions.rows import Session
from efrit_budget.storage.database import Database

IN_FULL = "(state = 'full')"
WITH_TEXT = "(same_as IS NULL)"
"""SQL that is true for a call whose entry has the text itself and is no "Same as" line."""

Columns = JsonObject
Edit = Callable[[Connection, Row, int], Columns]
"""Takes a connection, the row of a call and the window's clock; returns the columns to set."""


class UserEdits:
    """Lists and shows the entries of tool calls, and stores user edits of them."""

    def __init__(self, database: Database, conversation: Conversation) -> None:
        self._database = database
        self._conversation = conversation

    def list(
        self, session: Session, states: Sequence[str] | None, offset: int, limit: int
    ) -> JsonObject:
        """Return `limit` entries in these states from `offset` on, newest first, with the total."""
        with self._database.reading() as connection:
            total, rows = calls.list_page(connection, session.id, states, offset, limit)
            window, bounds = self._conversation.load(connection, session)
        entries = [_present_entry(row, window, bounds) for row in rows]
        return {"entries": entries, "total": total, "returned": len(entries), "offset": offset}

    def show(self, session: Session, number: int, most: int | None) -> JsonObject:
        """Return an entry with up to `most` characters of its result; this counts as no use."""
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

    def pin(self, session: Session, number: int) -> JsonObject:
        """Pin an entry; raise if all pins would exceed half of the tier of tool results."""

        def edit(connection: Connection, row: Row, _clock: int) -> Columns:
            pinned = calls.sum_pinned(connection, session.id, row["tool_use_id"])
            most = session.limits.tiers[Tier.TOOL_RESULTS] // 2
            if pinned + row["tokens"] > most:
                raise ConflictError(
                    f"{handle(row['number'])} has {row['tokens']:,} tokens and {pinned:,} are "
                    f"pinned already; at most {most:,}, half of the results' tier, can be"
                )
            return {"pinned": 1}

        return self._apply(session, number, edit, IN_FULL, needs_text=True)

    def unpin(self, session: Session, number: int) -> JsonObject:
        """Unpin an entry, so that rewrites may compress it again."""
        return self._apply(session, number, lambda *_: {"pinned": 0}, "pinned = 1")

    def drop(self, session: Session, number: int) -> JsonObject:
        """Unpin an entry, and compress it if it is in full."""

        def edit(_connection: Connection, row: Row, _clock: int) -> Columns:
            if row["state"] != PieceState.FULL:
                return {"pinned": 0}
            wish = None if row["wish"] == UserEdit.RESTORE else UserEdit.DROP
            return {"pinned": 0, "state": PieceState.COMPRESSED, "wish": wish}

        return self._apply(session, number, edit, IN_FULL)

    def restore(self, session: Session, number: int) -> JsonObject:
        """Bring an entry back in full, with the turn it belongs to."""

        def edit(connection: Connection, row: Row, clock: int) -> Columns:
            if row["state"] == PieceState.FULL:
                return {"last_use": clock}
            if row["turn"] is None:
                name = handle(row["number"])
                raise ConflictError(
                    f"{name} was never part of the conversation; recall_result {name} brings it"
                )
            segments.restore_reply(connection, session.id, row["turn"], clock)
            calls.restore_turn(connection, session.id, row["turn"])
            wish = None if row["wish"] == UserEdit.DROP else UserEdit.RESTORE
            return {"last_use": clock, "state": PieceState.FULL, "wish": wish}

        return self._apply(session, number, edit, f"NOT {IN_FULL}", needs_text=True)

    def evict_all(self, session: Session) -> JsonObject:
        """Evict all results of a session without turns, and begin a new epoch.

        The client of such a session keeps the window itself. Raise if the session has turns.
        """
        with self._database.writing() as connection:
            window, bounds = self._conversation.load(connection, session)
            if window.turn:
                raise ConflictError(
                    f"session {session.id!r} has turns, so turn/begin compacts its window"
                )
            calls.evict_outside(connection, session.id)
            window = replace(window, epoch=window.epoch + 1, turn_tokens=0)
            windows.save(connection, window)
            return {"budget": load_state(connection, window, bounds).snapshot()}

    def _apply(
        self, session: Session, number: int, edit: Edit, preferred: str, *, needs_text: bool = False
    ) -> JsonObject:
        """Edit the entry of a result; of several, prefer one for which the SQL `preferred` is true.

        With `needs_text`, edit the entry that has the text instead of a "Same as" line.
        """
        with self._database.writing() as connection:
            row = _row(connection, session, number, preferred)
            if needs_text and row["same_as"] is not None:
                row = _row(connection, session, row["same_as"], f"{WITH_TEXT} DESC, {preferred}")
            window, bounds = self._conversation.load(connection, session)
            columns = edit(connection, row, window.clock)
            calls.update(connection, (session.id, row["tool_use_id"]), **columns)
            state = load_state(connection, window, bounds)
            if row["turn"] is not None:
                comes_back = row["state"] == PieceState.GONE and "state" in columns
                state = measure_again(connection, state, comes_back=comes_back)
        entry = _present_entry({**dict(row), **columns}, state.window, bounds)
        return {"entry": entry, "budget": state.snapshot()}


def _row(connection: Connection, session: Session, number: int, preferred: str) -> Row:
    row = calls.find_number(connection, session.id, number, preferred)
    if row is None:
        raise TokenError(f"this session has no entry {handle(number)}")
    return row


def _present_entry(row: Row | Columns, window: Window, bounds: Bounds) -> JsonObject:
    """Return an entry as the budget view shows it."""
    return {
        **call_facts(row),
        "tool_use_id": plain_id(row["tool_use_id"]),
        "status": row["status"],
        "tokens_now": _tokens_now(row, bounds.calibration),
        "compressed": row["compressed"],
        "ended": row["ended"],
        "age": window.clock - row["last_use"],
        "lisp": row["lisp"],
        "todos": json.loads(row["todos"]) if row["todos"] else None,
    }


def _tokens_now(row: Row | Columns, calibration: Calibration) -> int:
    """Return the tokens that an entry costs in the window now, 0 if it is not in the window."""
    if row["turn"] is None or row["state"] not in (PieceState.FULL, PieceState.COMPRESSED):
        return 0
    if row["state"] == PieceState.COMPRESSED:
        return calibration.tokens(row["compressed_raw"])
    full: int = max(row["tokens"] or 0, calibration.tokens(row["raw"]) + row["exact"])
    return full
