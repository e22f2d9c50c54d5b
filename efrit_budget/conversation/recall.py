"""Recall results, turns and the work log."""

import json
import re
from dataclasses import dataclass
from sqlite3 import Connection, Row

from efrit_budget.conversation import calls, segments, turns
from efrit_budget.conversation.compressed_line import summary_of
from efrit_budget.errors import JsonObject
from efrit_budget.results import store as results
from efrit_budget.results.body import Body, of_items
from efrit_budget.results.marks import own
from efrit_budget.results.tokens import LISTED, TokenError, handle, number_of
from efrit_budget.storage.database import Database
from efrit_budget.tools.base import Stored

TURN = re.compile(r"\s*[tT]([1-9][0-9]{0,8})\s*")
ARGUMENTS_SHOWN = 100
STATES = {"full": "in full", "compressed": "shrunk", "gone": "evicted"}


@dataclass(frozen=True)
class SessionResults:
    """The stored results of one session, for its tools."""

    _database: Database
    _session_id: str

    def body(self, name: str) -> Body:
        """Return the body of a result (r7) or turn (t7) by its handle; raise if there is none."""
        turn = TURN.fullmatch(name)
        with self._database.reading() as connection:
            if turn is not None:
                return _turn(connection, self._session_id, int(turn[1]))
            return results.get(connection, self._session_id, number_of(name))

    def as_stored(self, name: str) -> Stored | None:
        """Return a stored result as a place to deliver it from, or None for a turn's handle."""
        if TURN.fullmatch(name):
            return None
        number = number_of(name)
        with self._database.reading() as connection:
            results.get_row(connection, self._session_id, number)
        return Stored(number)

    def listing(self) -> Body:
        """Return a line for each result and each evicted message or reply, oldest first."""
        with self._database.reading() as connection:
            call_rows = calls.list_results(connection, self._session_id)
            evicted = segments.list_evicted(connection, self._session_id)
            times = turns.list_times(connection, self._session_id) if evicted else {}
        entries: list[tuple[tuple[float, int], tuple[str, JsonObject]]] = [
            ((row["ended"], row["number"]), (_call_line(row), call_facts(row))) for row in call_rows
        ]
        for row in evicted:
            facts = {"handle": f"t{row['turn']}", "role": row["role"], "state": "gone"}
            words = " ".join(_block_text(json.loads(row["content"])).split())
            line = f"t{row['turn']} {row['role']} (evicted): {words[:120]}"
            entries.append(
                ((times[row["turn"]]["begun"], 0), (line, facts | {"turn": row["turn"]}))
            )
        entries.sort(key=lambda entry: entry[0])
        return of_items("entries", [(None, [entry for _, entry in entries])])


def _turn(connection: Connection, session_id: str, turn: int) -> Body:
    """Return the message and reply of a turn, without its results."""
    rows = segments.list_turn(connection, session_id, turn)
    if not rows:
        raise TokenError(f"this session has no turn t{turn}; {LISTED}")
    parts = [own(f"{row['role']}:", _block_text(json.loads(row["content"]))) for row in rows]
    return Body("\n".join(parts))


def _block_text(blocks: list[JsonObject]) -> str:
    return "\n".join(
        block["text"] if block.get("type") == "text" else json.dumps(block, ensure_ascii=False)
        for block in blocks
        if block.get("type") != "redacted_thinking"
    )


def _call_line(row: Row) -> str:
    arguments = row["arguments"]
    if len(arguments) > ARGUMENTS_SHOWN:
        arguments = arguments[:ARGUMENTS_SHOWN] + "…"
    pinned = ", pinned" if row["pinned"] else ""
    tokens = f"{row['tokens']:,} tokens"
    summary = summary_of(row)
    summary_text = f": {summary[:120]}" if summary else ""
    called = f"{handle(row['number'])} {row['tool']} {arguments}"
    return f"{called} ({tokens}, {STATES[row['state']]}{pinned}){summary_text}"


def call_facts(row: Row | JsonObject) -> JsonObject:
    """Return the facts of a tool call that the work log and the budget view show."""
    return {
        "handle": handle(row["number"]) if row["number"] else None,
        "tool": row["tool"],
        "arguments": json.loads(row["arguments"]),
        "tokens": row["tokens"],
        "state": row["state"],
        "pinned": bool(row["pinned"]),
        "turn": row["turn"],
    }
