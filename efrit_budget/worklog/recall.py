"""Bringing back what left the window: results, turns, and the log itself."""

from __future__ import annotations

import json
import re
import sqlite3

from efrit_budget.errors import Json
from efrit_budget.results import store as results
from efrit_budget.results.body import Body, of_items
from efrit_budget.results.marks import own
from efrit_budget.results.tokens import LISTED, TokenError, handle, number_of
from efrit_budget.storage.database import Database
from efrit_budget.tools.base import Stored
from efrit_budget.window.head import outcome_of

TURN = re.compile(r"\s*[tT]([1-9][0-9]{0,8})\s*")
ARGUMENTS_SHOWN = 100


class SessionResults:
    """The stored results of one session, as its tools may see them."""

    def __init__(self, database: Database, session_id: str) -> None:
        self._database = database
        self._session_id = session_id

    def body(self, name: str) -> Body:
        """What a handle names: a result (r7), or what was said in a turn (t7)."""
        turn = TURN.fullmatch(name)
        with self._database.reading() as connection:
            if turn is not None:
                return _turn(connection, self._session_id, int(turn[1]))
            return results.get(connection, self._session_id, number_of(name))

    def as_stored(self, name: str) -> Stored | None:
        """Where a result stands, to be delivered as it is; a turn is not stored as one."""
        if TURN.fullmatch(name):
            return None
        number = number_of(name)
        with self._database.reading() as connection:
            results.created(connection, self._session_id, number)
        return Stored(number)

    def listing(self) -> Body:
        """The work log: a line for each call and for each turn that left, the oldest first."""
        with self._database.reading() as connection:
            calls = connection.execute(
                "SELECT number, tool, arguments, tokens, state, pinned, turn, compressed, ended"
                " FROM calls WHERE session_id = ? AND number IS NOT NULL",
                (self._session_id,),
            ).fetchall()
            said = connection.execute(
                "SELECT segments.turn, role, content, begun FROM segments"
                " JOIN turns ON turns.session_id = segments.session_id"
                "   AND turns.number = segments.turn"
                " WHERE segments.session_id = ? AND state = 'gone' AND phase IN (0, 2)",
                (self._session_id,),
            ).fetchall()
        entries = [((row["ended"], row["number"]), (_line(row), _fact(row))) for row in calls]
        entries += [((row["begun"], 0), (_said_line(row), _said_fact(row))) for row in said]
        return of_items("entries", [(None, [entry for _, entry in sorted(entries, key=_moment)])])


def _moment(entry: tuple[tuple[float, int], object]) -> tuple[float, int]:
    return entry[0]


def _turn(connection: sqlite3.Connection, session_id: str, turn: int) -> Body:
    """What the person and the model said in a turn; its results have handles of their own."""
    rows = connection.execute(
        "SELECT role, content FROM segments WHERE session_id = ? AND turn = ? AND phase IN (0, 2)"
        " ORDER BY phase",
        (session_id, turn),
    ).fetchall()
    if not rows:
        raise TokenError(f"this session has no turn t{turn}; {LISTED}")
    parts = [own(f"{row['role']}:", _said(json.loads(row["content"]))) for row in rows]
    return Body("\n".join(parts))


def _said(blocks: list[Json]) -> str:
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
    summary = outcome_of(row["compressed"], row["number"])
    shown = f": {summary[:120]}" if summary else ""
    called = f"{handle(row['number'])} {row['tool']} {arguments}"
    return f"{called} ({tokens}, {_state(row)}{pinned}){shown}"


def _said_line(row: sqlite3.Row) -> str:
    words = " ".join(_said(json.loads(row["content"])).split())
    return f"t{row['turn']} {row['role']} (evicted): {words[:120]}"


def _said_fact(row: sqlite3.Row) -> dict[str, Json]:
    return {"handle": f"t{row['turn']}", "role": row["role"], "state": "gone", "turn": row["turn"]}


def _state(row: sqlite3.Row) -> str:
    return {"full": "in full", "compressed": "shrunk", "gone": "evicted"}[row["state"]]


def _fact(row: sqlite3.Row) -> dict[str, Json]:
    return {
        "handle": handle(row["number"]),
        "tool": row["tool"],
        "arguments": json.loads(row["arguments"]),
        "tokens": row["tokens"],
        "state": row["state"],
        "pinned": bool(row["pinned"]),
        "turn": row["turn"],
    }
