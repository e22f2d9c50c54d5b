"""Find and keep the results of tool calls."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, replace

from efrit_budget.conversation import tool_uses, windows
from efrit_budget.conversation.tool_call import ToolCall
from efrit_budget.errors import Json
from efrit_budget.results import store as results
from efrit_budget.results.body import Body
from efrit_budget.results.sound import sound_text
from efrit_budget.results.store import Packed, RecentBodies
from efrit_budget.results.tokens import Place
from efrit_budget.sessions.store import Session, touch
from efrit_budget.storage.database import Database
from efrit_budget.toolcalls.allowance import Grant
from efrit_budget.toolcalls.entry_draft import EndedCall, EntryDraft, Produced
from efrit_budget.toolcalls.envelope import envelope, envelope_of


@dataclass(frozen=True)
class Continuation:
    """The tool and the data that continue a result."""

    tool: str
    more: dict[str, Json]


class ResultKeeper:
    """Keeps the result of each call; every write is one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._recent = RecentBodies()

    def find(self, call: ToolCall) -> dict[str, Json] | None:
        """Return the envelope of a call that ended before, or None."""
        with self._database.reading() as connection:
            row = tool_uses.get_row(connection, call)
            if row is None or not tool_uses.has_result(row):
                return None
            return envelope_of(connection, row)

    def has_result(self, session_id: str, number: int) -> bool:
        """Return whether a result with this number is stored."""
        with self._database.reading() as connection:
            return results.holds(connection, session_id, number)

    def continuation(self, session_id: str, place: Place) -> Continuation | None:
        """Return how the tool continues a result at this place, or None."""
        with self._database.reading() as connection:
            body = self._recent.get(connection, session_id, place.number)
            if body.more is None or place.offset < len(body.text):
                return None
            return Continuation(results.tool_of(connection, session_id, place.number), body.more)

    def keep(
        self, session: Session, call: ToolCall, produced: Produced, grant: Grant
    ) -> dict[str, Json]:
        """Store what a call produced; return the envelope with what the grant allows of it.

        Where the call has a result already, that stands. What takes long is done before the
        transaction: should the window have changed meanwhile, it is done anew.
        """
        result = self._prepare_result(session.id, produced)
        body = result.body if isinstance(result, Packed) else result
        ended_call = EndedCall(session, call, produced, result, body, grant)
        while True:
            with self._database.reading() as connection:
                draft = EntryDraft(connection, ended_call)
            with self._database.writing() as connection:
                row = tool_uses.get_row(connection, call)
                if row is not None and tool_uses.has_result(row):
                    return envelope_of(connection, row)
                window = windows.load(connection, session.id)
                if draft.is_current(connection, window):
                    touch(connection, session.id)
                    draft.write(connection, window, row)
                    self._hold(connection, ended_call, draft.number)
                    return envelope(draft.entry, body)

    def _hold(self, connection: sqlite3.Connection, ended_call: EndedCall, number: int) -> None:
        """Hold a new body for its next pages."""
        if isinstance(ended_call.result, Packed):
            self._recent.keep(connection, ended_call.session.id, number, ended_call.body)

    def _prepare_result(self, session_id: str, produced: Produced) -> Packed | Body:
        """Return the result prepared for storage, or the stored body."""
        stored, whole = produced.outcome.stored, produced.outcome.whole
        with self._database.reading() as connection:
            if stored is not None:
                return self._recent.get(connection, session_id, stored.number)
            return results.packed(connection, replace(whole, text=sound_text(whole.text)))
