"""Recall results, turns and the work log."""

from __future__ import annotations

import json
import re
import sqlite3
from dataclasses import dataclass

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


@dataclass(frozen=True)
class SessionResults:
    """The stored results of one session, for its tools."""

    _database: Database
    _session_id: str

    def body(self, name: str) -> Body:
        """Return the result (r7) or turn (t7) of a handle."""
        turn = TURN.fullmatch(name)
        with self._database.reading() as connection:
            if turn is not None:
                return _turn(connection, self._session_id, int(turn[1]))
            return results.get(connection, self._session_id, number_of(name))

    def as_stored(self, name: str) -> Stored | None:
        """Return the place of a stored result, or None for a turn."""
        if TURN.fullmatch(name):
            return None
        number = number_of(name)
        with self._database.reading() as connection:
            results.created(connection, self._session_id, number)
        return Stored(number)

    def listing(self) -> Body:
        """Return the work log, one line per call and evicted turn, oldest first."""
        with self._database.reading() as connection:
            call_rows = calls.with_results(connection, self._session_id)
            evicted = segments.evicted(connection, self._session_id)
            begun = turns.begun_times(connection, self._session_id) if evicted else {}
        entries = [((row["ended"], row["number"]), (_line(row), _fact(row))) for row in call_rows]
        entries += [
            ((begun[row["turn"]], 0), (_turn_line(row), _turn_dict(row))) for row in evicted
        ]
        return of_items(
            "entries", [(None, [entry for _, entry in sorted(entries, key=_entry_time)])]
        )


def _entry_time(entry: tuple[tuple[float, int], object]) -> tuple[float, int]:
    return entry[0]


def _turn(connection: sqlite3.Connection, session_id: str, turn: int) -> Body:
    """Return the message and reply of a turn, without its results."""
    rows = segments.of_turn(connection, session_id, turn)
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


def _line(row: sqlite3.Row) -> str:
    arguments = row["arguments"]
    if len(arguments) > ARGUMENTS_SHOWN:
        arguments = arguments[:ARGUMENTS_SHOWN] + "…"
    pinned = ", pinned" if row["pinned"] else ""
    tokens = f"{row['tokens']:,} tokens"
    summary = summary_of(row["compressed"], row["number"])
    summary_text = f": {summary[:120]}" if summary else ""
    called = f"{handle(row['number'])} {row['tool']} {arguments}"
    return f"{called} ({tokens}, {_state(row)}{pinned}){summary_text}"


def _turn_line(row: sqlite3.Row) -> str:
    words = " ".join(_block_text(json.loads(row["content"])).split())
    return f"t{row['turn']} {row['role']} (evicted): {words[:120]}"


def _turn_dict(row: sqlite3.Row) -> JsonObject:
    return {"handle": f"t{row['turn']}", "role": row["role"], "state": "gone", "turn": row["turn"]}


def _state(row: sqlite3.Row) -> str:
    return {"full": "in full", "compressed": "shrunk", "gone": "evicted"}[row["state"]]


def _fact(row: sqlite3.Row) -> JsonObject:
    return {
        "handle": handle(row["number"]),
        "tool": row["tool"],
        "arguments": json.loads(row["arguments"]),
        "tokens": row["tokens"],
        "state": row["state"],
        "pinned": bool(row["pinned"]),
        "turn": row["turn"],
    }
