"""The rows of the work log: each tool use has one outcome, however often it is asked for."""

from __future__ import annotations

import json
import sqlite3
import time
from dataclasses import dataclass

from efrit_budget.errors import ConflictError, Json
from efrit_budget.results import store as results
from efrit_budget.results.body import Body
from efrit_budget.results.tokens import handle
from efrit_budget.window.pieces import State
from efrit_budget.window.record import Window
from efrit_budget.window.uses import put_aside
from efrit_budget.worklog.use import Use


@dataclass(frozen=True)
class Entry:
    """What a use gave, as it is kept."""

    status: str
    message: str | None
    number: int
    page_start: int
    page_end: int
    delivered: str
    page: dict[str, Json]
    tokens: int
    exact: int
    """What of the tokens is known and not estimated: what stands beside the text."""
    raw: int
    compressed: str
    compressed_raw: int
    same_as: int | None
    lisp: str | None = None
    todos: Json = None


def row_of(connection: sqlite3.Connection, use: Use) -> sqlite3.Row | None:
    """The row of a use; the same id for another call is refused.

    A row that was only announced does not bind the arguments: a person may have changed them.
    Nor does an answer that says that the use was not run.
    """
    row: sqlite3.Row | None = connection.execute(
        "SELECT * FROM calls WHERE session_id = ? AND tool_use_id = ?",
        (use.session_id, use.tool_use_id),
    ).fetchone()
    started = row is not None and (row["begun"] is not None or has_result(row))
    if row is not None and started and (row["tool"], row["arguments"]) != _call(use):
        raise ConflictError(
            f"tool_use_id {use.tool_use_id!r} was used before, for another call of {row['tool']}",
            data={"tool_use_id": use.tool_use_id},
        )
    return row


def has_result(row: sqlite3.Row) -> bool:
    """Whether the use gave a result; an answer in place of one has no handle."""
    return row["number"] is not None


def is_answered(row: sqlite3.Row) -> bool:
    """Whether the conversation went on without the result of this use."""
    return row["ended"] is not None and not has_result(row)


def _call(use: Use) -> tuple[str, str]:
    return use.tool, use.canonical_arguments


def envelope_of(connection: sqlite3.Connection, row: sqlite3.Row) -> dict[str, Json]:
    """The envelope a use gave, the same each time."""
    body = results.get(connection, row["session_id"], row["number"])
    return _envelope(row, json.loads(row["page"]), body)


def envelope(entry: Entry, body: Body) -> dict[str, Json]:
    """The envelope of an entry that was kept just now."""
    return _envelope(vars(entry), entry.page, body)


def _envelope(
    entry: sqlite3.Row | dict[str, Json], page: dict[str, Json], body: Body
) -> dict[str, Json]:
    envelope: dict[str, Json] = {
        "status": entry["status"],
        "data": body.data_of(entry["page_start"], entry["page_end"]) | page,
        "text": entry["delivered"],
        "handle": handle(entry["number"]),
        "tokens": entry["tokens"],
    }
    if entry["exact"]:
        envelope["content"] = [*body.content, {"type": "text", "text": entry["delivered"]}]
    if entry["message"]:
        envelope["message"] = entry["message"]
    return envelope


def begin(connection: sqlite3.Connection, use: Use, owner: str) -> bool:
    """Note that a use with effects starts here; false if it was started before."""
    row = row_of(connection, use)
    if row is not None and (row["begun"] is not None or has_result(row)):
        return False
    if row is not None and is_answered(row):
        put_aside(connection, use.session_id, use.tool_use_id)
    connection.execute(
        "INSERT INTO calls (session_id, tool_use_id, tool, arguments, owner, begun)"
        " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE"
        " SET tool = excluded.tool, arguments = excluded.arguments, owner = excluded.owner,"
        " begun = excluded.begun",
        (use.session_id, use.tool_use_id, *_call(use), owner, time.time()),
    )
    return True


def take_back(connection: sqlite3.Connection, use: Use) -> None:
    """Undo `begin`: the use only asked a question."""
    key = (use.session_id, use.tool_use_id)
    connection.execute(
        "UPDATE calls SET owner = NULL, begun = NULL"
        " WHERE session_id = ? AND tool_use_id = ? AND ended IS NULL AND turn IS NOT NULL",
        key,
    )
    connection.execute(
        "DELETE FROM calls"
        " WHERE session_id = ? AND tool_use_id = ? AND ended IS NULL AND turn IS NULL",
        key,
    )


KEEP = """
INSERT INTO calls (session_id, tool_use_id, tool, arguments, ended, status, message, number,
  page_start, page_end, delivered, page, tokens, exact, raw, compressed, compressed_raw, same_as,
  lisp, todos, state, last_use)
VALUES (:session_id, :tool_use_id, :tool, :arguments, :ended, :status, :message, :number,
  :page_start, :page_end, :delivered, :page, :tokens, :exact, :raw, :compressed, :compressed_raw,
  :same_as, :lisp, :todos, :state, :last_use)
ON CONFLICT DO UPDATE SET tool = excluded.tool, arguments = excluded.arguments,
  ended = excluded.ended, status = excluded.status, message = excluded.message,
  number = excluded.number, page_start = excluded.page_start, page_end = excluded.page_end,
  delivered = excluded.delivered, page = excluded.page, tokens = excluded.tokens,
  exact = excluded.exact, raw = excluded.raw, compressed = excluded.compressed,
  compressed_raw = excluded.compressed_raw, same_as = excluded.same_as, lisp = excluded.lisp,
  todos = excluded.todos, state = excluded.state, last_use = excluded.last_use
"""


def keep(
    connection: sqlite3.Connection, use: Use, entry: Entry, clock: int, *, in_window: bool
) -> None:
    """Write what a use gave."""
    tool, arguments = _call(use)
    values = {
        **vars(entry),
        "session_id": use.session_id,
        "tool_use_id": use.tool_use_id,
        "tool": tool,
        "arguments": arguments,
        "ended": time.time(),
        "page": json.dumps(entry.page),
        "todos": None if entry.todos is None else json.dumps(entry.todos),
        "state": State.FULL if in_window else State.GONE,
        "last_use": clock,
    }
    connection.execute(KEEP, values)


def shown_in_full(
    connection: sqlite3.Connection, window: Window, blob: str, start: int, end: int
) -> int | None:
    """The result in the window whose text holds this stretch of this text, in full.

    Where no turns are told of, every result is taken to be in the client's window.
    """
    row = connection.execute(
        "SELECT calls.number FROM results JOIN calls USING (session_id, number)"
        " WHERE results.session_id = ? AND results.blob = ? AND calls.state = 'full'"
        " AND calls.same_as IS NULL AND page_start <= ? AND page_end >= ?"
        " AND (calls.turn IS NOT NULL OR ? = 0)"
        " ORDER BY calls.last_use DESC LIMIT 1",
        (window.session_id, blob, start, end, window.turn),
    ).fetchone()
    return None if row is None else int(row["number"])


def touch(connection: sqlite3.Connection, session_id: str, number: int, clock: int) -> None:
    """Count a use of a result."""
    connection.execute(
        "UPDATE calls SET last_use = ? WHERE session_id = ? AND number = ?",
        (clock, session_id, number),
    )
