"""Find and keep the results of tool calls."""

import json
import sqlite3
import time
from dataclasses import dataclass, replace

from efrit_budget.characters import sound_text
from efrit_budget.conversation import tool_uses, windows
from efrit_budget.conversation.tool_call import ToolCall
from efrit_budget.errors import JsonObject
from efrit_budget.project.paths import shown_name
from efrit_budget.project.stamps import stamp_of
from efrit_budget.results import store as results
from efrit_budget.results.body import Body
from efrit_budget.results.store import RecentBodies
from efrit_budget.results.tokens import Place, handle
from efrit_budget.sessions import rows
from efrit_budget.sessions.rows import Session
from efrit_budget.storage.database import Database
from efrit_budget.toolcalls.allowance import Allowance
from efrit_budget.toolcalls.entry_draft import EndedCall, EntryDraft, Produced


@dataclass(frozen=True)
class Continuation:
    """The tool and the data that continue a result."""

    tool: str
    more: JsonObject


class ResultKeeper:
    """Stores and finds the results of calls; every write is one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._recent = RecentBodies()

    def find(self, call: ToolCall, *, with_data: bool) -> JsonObject | None:
        """Return the envelope of a call that ended before, or None."""
        with self._database.reading() as connection:
            row = tool_uses.get_row(connection, call)
            if row is None or row["number"] is None:
                return None
            body = results.get(connection, call.session_id, row["number"])
        return _envelope(row, body, with_data=with_data)

    def has_result(self, session_id: str, number: int) -> bool:
        """Return whether a result with this number is stored."""
        with self._database.reading() as connection:
            return results.find(connection, session_id, number) is not None

    def continuation(self, session_id: str, place: Place) -> Continuation | None:
        """Return the tool and data that continue a result whose text ends at `place`, or None."""
        with self._database.reading() as connection:
            body = self._recent.get(connection, session_id, place.number)
            if body.more is None or place.offset < len(body.text):
                return None
            row = results.get_row(connection, session_id, place.number)
            return Continuation(row["tool"], body.more)

    def keep(
        self,
        session: Session,
        call: ToolCall,
        produced: Produced,
        allowance: Allowance,
        *,
        with_data: bool,
    ) -> JsonObject:
        """Store what a call produced; return the envelope with what the allowance allows of it.

        A result that the call has already is returned instead. The entry is prepared before the
        transaction, and once more if the window has changed meanwhile.
        """
        stored, body = produced.outcome.stored, produced.outcome.whole
        with self._database.reading() as connection:
            if stored is not None:
                body, new = self._recent.get(connection, session.id, stored.number), None
            else:
                body = replace(body, text=sound_text(body.text))
                new = results.packed(connection, body)
        ended = EndedCall(session, call, produced, allowance, body, new)
        while True:
            with self._database.reading() as connection:
                draft = EntryDraft(connection, ended)
            with self._database.writing() as connection:
                row = tool_uses.get_row(connection, call)
                if row is not None and row["number"] is not None:
                    kept = results.get(connection, session.id, row["number"])
                    return _envelope(row, kept, with_data=with_data)
                window = windows.load(connection, session.id)
                if draft.is_current(connection, window):
                    rows.update(connection, session.id, touched=time.time())
                    draft.write(connection, window, row)
                    if new is not None and draft.entry.page_end < len(body.text):
                        self._recent.keep(connection, session.id, draft.number, body)
                    return _envelope(vars(draft.entry), body, with_data=with_data)


def _envelope(entry: sqlite3.Row | JsonObject, body: Body, *, with_data: bool) -> JsonObject:
    """Return the JSON reply to a tool call, from a stored row or a new entry."""
    envelope: JsonObject = {"status": entry["status"]}
    if with_data:
        data = body.data_of(entry["page_start"], entry["page_end"])
        envelope["data"] = data | json.loads(entry["page"])
    envelope |= {
        "text": entry["delivered"],
        "handle": handle(entry["number"]),
        "tokens": entry["tokens"],
    }
    if entry["exact"]:
        envelope["content"] = [*body.content, {"type": "text", "text": entry["delivered"]}]
    if entry["message"]:
        envelope["message"] = entry["message"]
    envelope |= {name: entry[name] for name in ("gist", "ending") if entry[name]}
    if len(body.sources) == 1:
        source = body.sources[0]
        stamp = stamp_of(source.size, source.modified_ns)
        envelope["source"] = {"path": shown_name(source.path), "stamp": stamp}
    return envelope
