"""The table `calls`: tool calls and what of their results is shown. All its SQL stands here."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from efrit_budget.conversation.pieces import Key, Phase, Piece, PieceState
from efrit_budget.conversation.tool_call import ToolCall
from efrit_budget.conversation.windows import Window
from efrit_budget.errors import Json

Rows = list[sqlite3.Row]
NEW = "session_id = :session AND turn >= :first AND turn < :turn AND state = 'full'"
INSERT = """
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


@dataclass(frozen=True)
class CallEntry:
    """What is stored of a call that has ended."""

    status: str
    message: str | None
    number: int
    page_start: int
    page_end: int
    delivered: str
    page: dict[str, Json]
    tokens: int
    exact: int
    """The tokens that are known and not estimated: those of what stands beside the text."""
    raw: int
    compressed: str
    compressed_raw: int
    same_as: int | None
    lisp: str | None = None
    todos: Json = None


# One call


def get(connection: sqlite3.Connection, session_id: str, tool_use_id: str) -> sqlite3.Row | None:
    """Return the row of a call, or None."""
    row: sqlite3.Row | None = connection.execute(
        "SELECT * FROM calls WHERE session_id = ? AND tool_use_id = ?", (session_id, tool_use_id)
    ).fetchone()
    return row


def of_piece(connection: sqlite3.Connection, session_id: str, piece: Piece) -> sqlite3.Row:
    """Return what the window shows of a call."""
    row: sqlite3.Row = connection.execute(
        "SELECT session_id, number, tool_use_id, status, delivered, exact, compressed FROM calls"
        " WHERE session_id = ? AND turn = ? AND ordinal = ?",
        (session_id, piece.turn, piece.ordinal),
    ).fetchone()
    return row


def insert(
    connection: sqlite3.Connection, call: ToolCall, entry: CallEntry, clock: int, state: PieceState
) -> None:
    """Store what a call produced."""
    values = {
        **vars(entry),
        "session_id": call.session_id,
        "tool_use_id": call.tool_use_id,
        "tool": call.tool,
        "arguments": call.canonical_arguments,
        "ended": time.time(),
        "page": json.dumps(entry.page),
        "todos": None if entry.todos is None else json.dumps(entry.todos),
        "state": state,
        "last_use": clock,
    }
    connection.execute(INSERT, values)


def announce(connection: sqlite3.Connection, call: ToolCall, turn: int, ordinal: int) -> None:
    """Insert a call of a reply; one that has its result already gets its place."""
    connection.execute(
        "INSERT INTO calls (session_id, tool_use_id, tool, arguments, turn, ordinal, state)"
        " VALUES (?, ?, ?, ?, ?, ?, 'announced') ON CONFLICT DO UPDATE"
        " SET turn = excluded.turn, ordinal = excluded.ordinal WHERE turn IS NULL",
        (call.session_id, call.tool_use_id, call.tool, call.canonical_arguments, turn, ordinal),
    )


def start(connection: sqlite3.Connection, call: ToolCall, owner: str) -> None:
    """Record that a call runs in a process."""
    connection.execute(
        "INSERT INTO calls (session_id, tool_use_id, tool, arguments, owner, begun)"
        " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE"
        " SET tool = excluded.tool, arguments = excluded.arguments, owner = excluded.owner,"
        " begun = excluded.begun",
        (
            *(call.session_id, call.tool_use_id, call.tool, call.canonical_arguments),
            *(owner, time.time()),
        ),
    )


def undo_start(connection: sqlite3.Connection, call: ToolCall) -> None:
    """Undo `start` for a call that has not ended."""
    key = (call.session_id, call.tool_use_id)
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


def answer(
    connection: sqlite3.Connection, key: tuple[str, str], text: str, raw: int, clock: int
) -> None:
    """Store an answer in the place of a result."""
    connection.execute(
        "UPDATE calls SET state = 'full', status = 'error', ended = ?, delivered = ?, raw = ?,"
        " compressed = ?, compressed_raw = ?, last_use = ?"
        " WHERE session_id = ? AND tool_use_id = ?",
        (time.time(), text, raw, text, raw, clock, *key),
    )


def rename(connection: sqlite3.Connection, key: tuple[str, str], tool_use_id: str) -> None:
    """Give a row another id."""
    connection.execute(
        "UPDATE calls SET tool_use_id = ? WHERE session_id = ? AND tool_use_id = ?",
        (tool_use_id, *key),
    )


def update(connection: sqlite3.Connection, row: sqlite3.Row, **columns: Json) -> None:
    """Set columns of a row; their names are ours."""
    names = ", ".join(f"{name} = ?" for name in columns)
    connection.execute(
        f"UPDATE calls SET {names} WHERE session_id = ? AND tool_use_id = ?",  # noqa: S608
        (*columns.values(), row["session_id"], row["tool_use_id"]),
    )


def count_use(connection: sqlite3.Connection, session_id: str, number: int, clock: int) -> None:
    """Count a use of a result."""
    connection.execute(
        "UPDATE calls SET last_use = ? WHERE session_id = ? AND number = ?",
        (clock, session_id, number),
    )


# Ids between two


def count_between(connection: sqlite3.Connection, session_id: str, first: str, last: str) -> int:
    """Return how many ids lie between two."""
    row = connection.execute(
        "SELECT count(*) FROM calls WHERE session_id = ? AND tool_use_id > ? AND tool_use_id < ?",
        (session_id, first, last),
    ).fetchone()
    return int(row[0])


def point_latest(
    connection: sqlite3.Connection, session_id: str, ids: tuple[str, str], text: str, raw: int
) -> None:
    """Set the compressed line of the latest answer whose id lies between two."""
    connection.execute(
        "UPDATE calls SET compressed = ?1, compressed_raw = ?2 WHERE session_id = ?3"
        " AND tool_use_id > ?4 AND tool_use_id < ?5 AND number IS NULL AND state <> 'compressed'"
        " AND turn = (SELECT max(turn) FROM calls WHERE session_id = ?3"
        "   AND tool_use_id > ?4 AND tool_use_id < ?5)",
        (text, raw, session_id, *ids),
    )


# Calls of a session


def list_page(
    connection: sqlite3.Connection,
    session_id: str,
    states: Sequence[str] | None,
    offset: int,
    limit: int,
) -> tuple[int, Rows]:
    """Return how many calls are in these states, and some of them, newest first."""
    values = (session_id, json.dumps(list(states)) if states else None)
    total = connection.execute(
        "SELECT count(*) FROM calls WHERE session_id = ?1"
        " AND (?2 IS NULL OR state IN (SELECT value FROM json_each(?2)))",
        values,
    ).fetchone()
    rows = connection.execute(
        "SELECT * FROM calls WHERE session_id = ?1"
        " AND (?2 IS NULL OR state IN (SELECT value FROM json_each(?2)))"
        " ORDER BY ended IS NULL DESC, ended DESC, number DESC, turn DESC, ordinal DESC"
        " LIMIT ?3 OFFSET ?4",
        (*values, limit, offset),
    ).fetchall()
    return int(total[0]), rows


def with_number(
    connection: sqlite3.Connection, session_id: str, number: int, preferred: str
) -> sqlite3.Row | None:
    """Return the call of a result; of several, one that a condition holds for."""
    row: sqlite3.Row | None = connection.execute(
        "SELECT * FROM calls WHERE session_id = ? AND number = ?"  # noqa: S608  own words
        f" ORDER BY {preferred} DESC, last_use DESC, ended DESC LIMIT 1",
        (session_id, number),
    ).fetchone()
    return row


def with_results(connection: sqlite3.Connection, session_id: str) -> Rows:
    """Return the calls that have results."""
    return connection.execute(
        "SELECT number, tool, arguments, tokens, state, pinned, turn, compressed, ended"
        " FROM calls WHERE session_id = ? AND number IS NOT NULL",
        (session_id,),
    ).fetchall()


def in_full(connection: sqlite3.Connection, session_id: str) -> Rows:
    """Return the calls whose results are shown in full."""
    return connection.execute(
        "SELECT number, tool, tokens FROM calls WHERE session_id = ? AND state = 'full'"
        " ORDER BY number",
        (session_id,),
    ).fetchall()


def of_turn(connection: sqlite3.Connection, session_id: str, turn: int | None) -> Rows:
    """Return the calls of a turn; None selects those without a turn."""
    return connection.execute(
        "SELECT tool, arguments, tool_use_id, number, status, delivered, tokens, state"
        " FROM calls WHERE session_id = ? AND turn IS ? ORDER BY ordinal, ended",
        (session_id, turn),
    ).fetchall()


def evicted_of_turn(connection: sqlite3.Connection, session_id: str, turn: int) -> Rows:
    """Return the evicted calls of a turn."""
    return connection.execute(
        "SELECT number, tool, arguments, compressed FROM calls"
        " WHERE session_id = ? AND turn = ? AND state = 'gone' ORDER BY ordinal",
        (session_id, turn),
    ).fetchall()


def unanswered(connection: sqlite3.Connection, session_id: str) -> Rows:
    """Return the announced calls that have no result."""
    return connection.execute(
        "SELECT tool_use_id, tool, begun FROM calls"
        " WHERE session_id = ? AND turn IS NOT NULL AND state = 'announced'",
        (session_id,),
    ).fetchall()


def count_announced(connection: sqlite3.Connection, session_id: str) -> int:
    """Return how many announced calls have no result yet."""
    row = connection.execute(
        "SELECT count(*) FROM calls INDEXED BY calls_announced"
        " WHERE session_id = ? AND state = 'announced'"
        " AND turn IS NOT NULL",
        (session_id,),
    ).fetchone()
    return int(row[0])


def find_ended(
    connection: sqlite3.Connection, session_id: str, tool_use_ids: Collection[str]
) -> list[str]:
    """Return those of the calls that have a result."""
    if not tool_use_ids:
        return []
    rows = connection.execute(
        "SELECT tool_use_id FROM calls WHERE session_id = ? AND number IS NOT NULL"
        " AND tool_use_id IN (SELECT value FROM json_each(?))",
        (session_id, json.dumps(list(tool_use_ids))),
    ).fetchall()
    return [row["tool_use_id"] for row in rows]


def latest_todos(connection: sqlite3.Connection, session_id: str) -> Json:
    """Return the latest todo list of the model, or None."""
    row = connection.execute(
        "SELECT todos FROM calls WHERE session_id = ? AND todos IS NOT NULL"
        " ORDER BY ended DESC LIMIT 1",
        (session_id,),
    ).fetchone()
    return None if row is None else json.loads(row["todos"])


def has_user_edits(connection: sqlite3.Connection, session_id: str) -> bool:
    """Return whether a user edit waits for a piece that was sent."""
    found = connection.execute(
        "SELECT 1 FROM calls WHERE session_id = ? AND wish IS NOT NULL AND place IS NOT NULL",
        (session_id,),
    ).fetchone()
    return found is not None


def pinned_tokens(connection: sqlite3.Connection, session_id: str, beside: str) -> int:
    """Return the tokens of the pinned results, one call's apart."""
    row = connection.execute(
        "SELECT coalesce(sum(tokens), 0) FROM calls WHERE session_id = ? AND pinned = 1"
        " AND tool_use_id <> ?",
        (session_id, beside),
    ).fetchone()
    return int(row[0])


def evict_outside(connection: sqlite3.Connection, session_id: str) -> None:
    """Evict the results that have no place in the conversation."""
    connection.execute(
        "UPDATE calls INDEXED BY calls_outside SET state = 'gone'"
        " WHERE session_id = ? AND turn IS NULL AND state IN ('full', 'compressed')",
        (session_id,),
    )


def restore_turn(connection: sqlite3.Connection, session_id: str, turn: int) -> None:
    """Bring back the evicted calls of a turn in compressed form."""
    connection.execute(
        "UPDATE calls SET state = 'compressed' WHERE session_id = ? AND turn = ?"
        " AND state = 'gone'",
        (session_id, turn),
    )


# Pieces of the window


def in_window(connection: sqlite3.Connection, session_id: str) -> Rows:
    """Return the sizes and places of the calls in the window."""
    return connection.execute(
        "SELECT turn, ordinal, raw, exact, compressed_raw, state, last_use, pinned, place, wish"
        " FROM calls"
        " WHERE session_id = ? AND state IN ('full', 'compressed') AND turn IS NOT NULL",
        (session_id,),
    ).fetchall()


def full_places(connection: sqlite3.Connection, session_id: str) -> Rows:
    """Return for each "Same as" line where its text is shown in full."""
    return connection.execute(
        "SELECT line.turn, line.ordinal, shown.turn, shown.ordinal FROM calls AS line"
        " LEFT JOIN calls AS shown ON shown.session_id = line.session_id"
        "   AND shown.number = line.same_as AND shown.same_as IS NULL"
        "   AND shown.state = 'full' AND shown.turn IS NOT NULL"
        "   AND shown.page_start <= line.page_start AND shown.page_end >= line.page_end"
        " WHERE line.session_id = ? AND line.state IN ('full', 'compressed')"
        "   AND line.turn IS NOT NULL AND line.same_as IS NOT NULL",
        (session_id,),
    ).fetchall()


def find_full_copy(
    connection: sqlite3.Connection, window: Window, blob: str, start: int, end: int
) -> int | None:
    """Return the result in the window that shows this range in full, or None.

    Where there are no turns, every result is taken to be in the client's window.
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


def count_in_prompt(connection: sqlite3.Connection, session_id: str, first: int, turn: int) -> int:
    """Return how many results of the turns from `first` on are in the prompt of a turn."""
    found = connection.execute(
        "SELECT count(*) FROM calls WHERE session_id = ? AND turn >= ? AND turn < ?"
        " AND state IN ('full', 'compressed')",
        (session_id, first, turn),
    ).fetchone()
    return int(found[0])


def prompt_sums(connection: sqlite3.Connection, session_id: str) -> tuple[int, int]:
    """Return the estimated and the exactly known tokens in the prompt."""
    row = connection.execute(
        "SELECT coalesce(sum(CASE WHEN state = 'full' THEN raw ELSE compressed_raw END), 0),"
        " coalesce(sum(CASE WHEN state = 'full' THEN exact ELSE 0 END), 0)"
        " FROM calls WHERE session_id = ?"
        " AND state IN ('full', 'compressed') AND turn IS NOT NULL",
        (session_id,),
    ).fetchone()
    return row[0], row[1]


def shrunken_sums(connection: sqlite3.Connection, session_id: str) -> sqlite3.Row:
    """Return what the results that are not in full had cost, and what of it is left."""
    row: sqlite3.Row = connection.execute(
        "SELECT coalesce(sum(raw), 0) AS raw, coalesce(sum(exact), 0) AS exact,"
        " coalesce(sum(CASE WHEN state = 'compressed' THEN compressed_raw ELSE 0 END), 0) AS kept"
        " FROM calls WHERE session_id = ? AND turn IS NOT NULL"
        " AND state IN ('compressed', 'gone')",
        (session_id,),
    ).fetchone()
    return row


def new_raw(connection: sqlite3.Connection, span: Mapping[str, object]) -> int:
    """Return the estimate of the results that were new in the prompt of a turn."""
    row = connection.execute(
        f"SELECT coalesce(sum(raw), 0) FROM calls WHERE {NEW}",  # noqa: S608  own words
        span,
    ).fetchone()
    return int(row[0])


def scale_new(connection: sqlite3.Connection, span: Mapping[str, object], times: float) -> None:
    """Multiply the estimates of the results that were new in the prompt of a turn."""
    connection.execute(
        f"UPDATE calls SET raw = CAST(raw * :times AS INTEGER) WHERE {NEW}",  # noqa: S608
        {**span, "times": times},
    )


def set_states(
    connection: sqlite3.Connection, session_id: str, states: Mapping[Key, PieceState]
) -> None:
    """Set the states of results; other pieces are none."""
    connection.executemany(
        "UPDATE calls SET state = ? WHERE session_id = ? AND turn = ? AND ordinal = ?",
        [
            (state, session_id, turn, ordinal)
            for (turn, phase, ordinal), state in states.items()
            if phase == Phase.RESULT
        ],
    )


def set_places(
    connection: sqlite3.Connection, session_id: str, places: Iterable[tuple[Piece, int]]
) -> None:
    """Record which message carries each result; that applies its user edit."""
    connection.executemany(
        "UPDATE calls SET place = ?, wish = NULL WHERE session_id = ? AND turn = ? AND ordinal = ?",
        [
            (place, session_id, piece.turn, piece.ordinal)
            for piece, place in places
            if piece.phase is Phase.RESULT
        ],
    )


def clear_places(connection: sqlite3.Connection, session_id: str) -> None:
    """Clear all message places and user edits."""
    connection.execute(
        "UPDATE calls SET place = NULL, wish = NULL"
        " WHERE session_id = ? AND (place IS NOT NULL OR wish IS NOT NULL)",
        (session_id,),
    )


# All sessions


def count_by_session(connection: sqlite3.Connection) -> dict[str, int]:
    """Return the number of calls of each session that has any."""
    rows = connection.execute("SELECT session_id, count(*) FROM calls GROUP BY session_id")
    return {row[0]: row[1] for row in rows.fetchall()}


def pinned_sessions(connection: sqlite3.Connection) -> set[str]:
    """Return the sessions that a result is pinned in."""
    rows = connection.execute(
        "SELECT DISTINCT session_id FROM calls INDEXED BY calls_pinned WHERE pinned = 1"
    )
    return {row[0] for row in rows.fetchall()}


def delete_some(connection: sqlite3.Connection, session_id: str, most: int) -> int:
    """Delete up to so many calls of a session; return how many."""
    return connection.execute(
        "DELETE FROM calls WHERE rowid IN (SELECT rowid FROM calls WHERE session_id = ? LIMIT ?)",
        (session_id, most),
    ).rowcount
