"""The table `calls`: tool calls with what the window shows of them. All its SQL stands here."""

import json
from collections.abc import Collection, Mapping, Sequence
from sqlite3 import Connection, Row

from efrit_budget.conversation.pieces import Phase, Piece, PieceKey, PieceState
from efrit_budget.conversation.tool_call import ToolCall
from efrit_budget.conversation.windows import Window
from efrit_budget.errors import Json

NEW = "session_id = :session AND turn >= :first AND turn < :turn AND state = 'full'"
"""SQL that is true for the results of the turns from `first` to before `turn`."""


def get(connection: Connection, session_id: str, tool_use_id: str) -> Row | None:
    """Return the row of a call, or None."""
    statement = "SELECT * FROM calls WHERE session_id = ? AND tool_use_id = ?"
    row: Row | None = connection.execute(statement, (session_id, tool_use_id)).fetchone()
    return row


def get_piece(connection: Connection, session_id: str, piece: Piece) -> Row:
    """Return the columns of a call with which its result is sent, in full or compressed."""
    row: Row = connection.execute(
        "SELECT number, tool_use_id, status, delivered, exact, compressed FROM calls"
        " WHERE session_id = ? AND turn = ? AND ordinal = ?",
        (session_id, piece.turn, piece.ordinal),
    ).fetchone()
    return row


def save(connection: Connection, call: ToolCall, **columns: Json) -> None:
    """Insert the row of a call with these columns, or set them if the call has a row."""
    columns |= {"tool": call.tool, "arguments": call.canonical_arguments}
    changes = ", ".join(f"{name} = excluded.{name}" for name in columns)
    connection.execute(
        f"INSERT INTO calls (session_id, tool_use_id, {', '.join(columns)})"  # noqa: S608  own names
        f" VALUES (?, ?{', ?' * len(columns)}) ON CONFLICT DO UPDATE SET {changes}",
        (call.session_id, call.tool_use_id, *columns.values()),
    )


def announce(connection: Connection, call: ToolCall, turn: int, ordinal: int) -> None:
    """Insert a call of a reply; if it has a row without a turn, set turn and ordinal there."""
    connection.execute(
        "INSERT INTO calls (session_id, tool_use_id, tool, arguments, turn, ordinal, state)"
        " VALUES (?, ?, ?, ?, ?, ?, 'announced') ON CONFLICT DO UPDATE"
        " SET turn = excluded.turn, ordinal = excluded.ordinal WHERE turn IS NULL",
        (call.session_id, call.tool_use_id, call.tool, call.canonical_arguments, turn, ordinal),
    )


def undo_start(connection: Connection, call: ToolCall) -> None:
    """Undo `start` for a call that has not ended."""
    unfinished = "session_id = ? AND tool_use_id = ? AND ended IS NULL"
    key = (call.session_id, call.tool_use_id)
    connection.execute(
        f"UPDATE calls SET owner = NULL, begun = NULL WHERE {unfinished} AND turn IS NOT NULL",  # noqa: S608
        key,
    )
    connection.execute(f"DELETE FROM calls WHERE {unfinished} AND turn IS NULL", key)  # noqa: S608


def update(connection: Connection, key: tuple[str, str], **columns: Json) -> None:
    """Set columns of the call with this session and id."""
    names = ", ".join(f"{name} = ?" for name in columns)
    connection.execute(
        f"UPDATE calls SET {names} WHERE session_id = ? AND tool_use_id = ?",  # noqa: S608  own names
        (*columns.values(), *key),
    )


def count_use(connection: Connection, session_id: str, number: int, clock: int) -> None:
    """Record a use of a result: set its last use to the window's clock."""
    connection.execute(
        "UPDATE calls SET last_use = ? WHERE session_id = ? AND number = ?",
        (clock, session_id, number),
    )


def list_texts(
    connection: Connection, session_id: str, states: Sequence[PieceState], most: int = -1
) -> list[Row]:
    """Return number and text of the results of turns in these states, the latest `most` first."""
    return connection.execute(
        "SELECT number, delivered FROM calls WHERE session_id = ? AND turn > 0 AND number > 0"
        " AND state IN (SELECT value FROM json_each(?)) ORDER BY turn DESC, ordinal DESC LIMIT ?",
        (session_id, json.dumps(states), most),
    ).fetchall()


def count_between(connection: Connection, session_id: str, first: str, last: str) -> int:
    """Return how many calls have a tool use id that sorts between `first` and `last`."""
    row = connection.execute(
        "SELECT count(*) FROM calls WHERE session_id = ? AND tool_use_id > ? AND tool_use_id < ?",
        (session_id, first, last),
    ).fetchone()
    return int(row[0])


def point_latest(
    connection: Connection, session_id: str, ids: tuple[str, str], text: str, raw: int
) -> None:
    """Set the compressed line of the latest answer without a result whose id is between `ids`."""
    connection.execute(
        "UPDATE calls SET compressed = ?1, compressed_raw = ?2 WHERE session_id = ?3"
        " AND tool_use_id > ?4 AND tool_use_id < ?5 AND number IS NULL AND state <> 'compressed'"
        " AND turn = (SELECT max(turn) FROM calls WHERE session_id = ?3"
        "   AND tool_use_id > ?4 AND tool_use_id < ?5)",
        (text, raw, session_id, *ids),
    )


# Calls of a session


def list_ids(connection: Connection, session_id: str) -> list[str]:
    """Return the tool use ids of all calls that have a result or another answer."""
    rows = connection.execute(
        "SELECT tool_use_id FROM calls WHERE session_id = ? AND delivered IS NOT NULL",
        (session_id,),
    )
    return [row["tool_use_id"] for row in rows]


def list_page(
    connection: Connection,
    session_id: str,
    states: Sequence[str] | None,
    offset: int,
    limit: int,
) -> tuple[int, list[Row]]:
    """Return the number of calls in these states, and `limit` from `offset` on, newest first."""
    found = (
        "FROM calls WHERE session_id = ?1"
        " AND (?2 IS NULL OR state IN (SELECT value FROM json_each(?2)))"
    )
    values = (session_id, json.dumps(list(states)) if states else None)
    newest_first = "ended IS NULL DESC, ended DESC, number DESC, turn DESC, ordinal DESC"
    page = f"SELECT * {found} ORDER BY {newest_first} LIMIT ?3 OFFSET ?4"
    return (
        connection.execute(f"SELECT count(*) {found}", values).fetchone()[0],
        connection.execute(page, (*values, limit, offset)).fetchall(),
    )


def find_number(connection: Connection, session_id: str, number: int, preferred: str) -> Row | None:
    """Return a call with this result, or None; prefer one for which the SQL `preferred` is true."""
    row: Row | None = connection.execute(
        "SELECT * FROM calls WHERE session_id = ? AND number = ?"  # noqa: S608  own words
        f" ORDER BY {preferred} DESC, last_use DESC, ended DESC LIMIT 1",
        (session_id, number),
    ).fetchone()
    return row


def list_results(connection: Connection, session_id: str) -> list[Row]:
    """Return the calls that have results."""
    return connection.execute(
        "SELECT number, tool, arguments, tokens, state, pinned, turn, same_as, compressed, ended"
        " FROM calls WHERE session_id = ? AND number IS NOT NULL",
        (session_id,),
    ).fetchall()


def list_turn(connection: Connection, session_id: str, turn: int | None) -> list[Row]:
    """Return the calls of a turn; None selects calls without a turn."""
    return connection.execute(
        "SELECT tool, arguments, tool_use_id, number, status, delivered, tokens, state, gist,"
        " ending"
        " FROM calls WHERE session_id = ? AND turn IS ? ORDER BY ordinal, ended",
        (session_id, turn),
    ).fetchall()


def list_evicted(connection: Connection, session_id: str, turn: int) -> list[Row]:
    """Return the evicted calls of a turn, without their long texts."""
    return connection.execute(
        "SELECT number, tool, arguments, tokens, same_as, compressed FROM calls"
        " WHERE session_id = ? AND turn = ? AND state = 'gone' ORDER BY ordinal",
        (session_id, turn),
    ).fetchall()


def list_unanswered(connection: Connection, session_id: str) -> list[Row]:
    """Return the announced calls that have no result."""
    return connection.execute(
        "SELECT tool_use_id, tool, begun FROM calls"
        " WHERE session_id = ? AND turn IS NOT NULL AND state = 'announced'",
        (session_id,),
    ).fetchall()


def count_announced(connection: Connection, session_id: str) -> int:
    """Return how many announced calls have no result yet."""
    row = connection.execute(
        "SELECT count(*) FROM calls INDEXED BY calls_announced"
        " WHERE session_id = ? AND state = 'announced' AND turn IS NOT NULL",
        (session_id,),
    ).fetchone()
    return int(row[0])


def find_ended(connection: Connection, session_id: str, tool_use_ids: Collection[str]) -> list[str]:
    """Return those of these tool use ids whose calls have a result."""
    rows = connection.execute(
        "SELECT tool_use_id FROM calls WHERE session_id = ? AND number IS NOT NULL"
        " AND tool_use_id IN (SELECT value FROM json_each(?))",
        (session_id, json.dumps(list(tool_use_ids))),
    )
    return [row["tool_use_id"] for row in rows]


def find_todos(connection: Connection, session_id: str) -> Json:
    """Return the latest todo list of the model, or None."""
    found = "FROM calls WHERE session_id = ? AND todos IS NOT NULL ORDER BY ended DESC LIMIT 1"
    row = connection.execute(f"SELECT todos {found}", (session_id,)).fetchone()
    return None if row is None else json.loads(row["todos"])


def sum_pinned(connection: Connection, session_id: str, but: str) -> int:
    """Return the tokens of all pinned results, except that of the call `but`."""
    row = connection.execute(
        "SELECT coalesce(sum(tokens), 0) FROM calls WHERE session_id = ? AND pinned = 1"
        " AND tool_use_id <> ?",
        (session_id, but),
    ).fetchone()
    return int(row[0])


def evict_outside(connection: Connection, session_id: str) -> None:
    """Evict the results that belong to no turn."""
    connection.execute(
        "UPDATE calls INDEXED BY calls_outside SET state = 'gone'"
        " WHERE session_id = ? AND turn IS NULL AND state IN ('full', 'compressed')",
        (session_id,),
    )


def restore_turn(connection: Connection, session_id: str, turn: int) -> None:
    """Bring back the evicted calls of a turn in compressed form."""
    connection.execute(
        "UPDATE calls SET state = 'compressed'"
        " WHERE session_id = ? AND turn = ? AND state = 'gone'",
        (session_id, turn),
    )


# Pieces of the window


def list_window(connection: Connection, session_id: str) -> list[Row]:
    """Return the sizes, states and message numbers of the calls in the window."""
    return connection.execute(
        "SELECT turn, ordinal, raw, exact, compressed_raw, state, last_use, pinned, place, wish"
        " FROM calls WHERE session_id = ? AND state IN ('full', 'compressed') AND turn IS NOT NULL",
        (session_id,),
    ).fetchall()


def list_full_places(connection: Connection, session_id: str) -> list[Row]:
    """Return turn and ordinal of each "Same as" line, with those of each call that has its text."""
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
    connection: Connection, window: Window, blob: str | None, start: int, end: int
) -> int | None:
    """Return the number of a result in the window that shows this range of a text, or None.

    In a session without turns, every result counts as in the window. An empty range, or a text
    without a hash, has no copy.
    """
    row = connection.execute(
        "SELECT calls.number FROM results JOIN calls USING (session_id, number)"
        " WHERE results.session_id = ?1 AND results.blob = ?2 AND calls.state = 'full'"
        " AND calls.same_as IS NULL AND page_start <= ?3 AND page_end >= ?4 AND ?3 < ?4"
        " AND (calls.turn IS NOT NULL OR ?5 = 0) ORDER BY calls.last_use DESC LIMIT 1",
        (window.session_id, blob, start, end, window.turn),
    ).fetchone()
    return None if row is None else row["number"]


def find_shown_end(
    connection: Connection, window: Window, blob: str | None, start: int, least: int
) -> int | None:
    """Return where a page in the window ends that shows a text from `start` to `least` or further.

    Of several, return the furthest end; None if there is no such page.
    """
    row = connection.execute(
        "SELECT max(page_end) FROM results JOIN calls USING (session_id, number)"
        " WHERE results.session_id = ?1 AND results.blob = ?2 AND calls.state = 'full'"
        " AND calls.same_as IS NULL AND page_start <= ?3 AND page_end >= ?4 AND page_end > ?3"
        " AND (calls.turn IS NOT NULL OR ?5 = 0)",
        (window.session_id, blob, start, least, window.turn),
    ).fetchone()
    end: int | None = row[0]
    return end


def count_in_prompt(connection: Connection, session_id: str, first: int, turn: int) -> int:
    """Return how many results of the turns from `first` on are in the prompt of a turn."""
    row = connection.execute(
        "SELECT count(*) FROM calls WHERE session_id = ? AND turn >= ? AND turn < ?"
        " AND state IN ('full', 'compressed')",
        (session_id, first, turn),
    ).fetchone()
    return int(row[0])


def sum_prompt(connection: Connection, session_id: str) -> tuple[int, int]:
    """Return the estimated and the exactly known tokens of the results in the window."""
    raw, exact = connection.execute(
        "SELECT coalesce(sum(CASE WHEN state = 'full' THEN raw ELSE compressed_raw END), 0),"
        " coalesce(sum(CASE WHEN state = 'full' THEN exact ELSE 0 END), 0)"
        " FROM calls WHERE session_id = ?"
        " AND state IN ('full', 'compressed') AND turn IS NOT NULL",
        (session_id,),
    ).fetchone()
    return raw, exact


def sum_shrunken(connection: Connection, session_id: str) -> Row:
    """Return what compressed and evicted results cost in full (`raw`, `exact`) and now (`kept`)."""
    row: Row = connection.execute(
        "SELECT coalesce(sum(raw), 0) AS raw, coalesce(sum(exact), 0) AS exact,"
        " coalesce(sum(CASE WHEN state = 'compressed' THEN compressed_raw ELSE 0 END), 0) AS kept"
        " FROM calls WHERE session_id = ? AND turn IS NOT NULL"
        " AND state IN ('compressed', 'gone')",
        (session_id,),
    ).fetchone()
    return row


def sum_new(connection: Connection, span: Mapping[str, object]) -> int:
    """Return the estimate of the results in full in the turns of `span`."""
    statement = f"SELECT coalesce(sum(raw), 0) FROM calls WHERE {NEW}"  # noqa: S608  own words
    return int(connection.execute(statement, span).fetchone()[0])


def scale_new(connection: Connection, span: Mapping[str, object], times: float) -> None:
    """Multiply the estimates of the results in full in the turns of `span`."""
    connection.execute(
        f"UPDATE calls SET raw = CAST(raw * :times AS INTEGER) WHERE {NEW}",  # noqa: S608
        {**span, "times": times},
    )


def update_pieces(
    connection: Connection, session_id: str, change: str, values: Mapping[PieceKey, Json]
) -> None:
    """Apply the SQL `change` to each result, with its value; ignore the keys of other pieces."""
    connection.executemany(
        f"UPDATE calls SET {change} WHERE session_id = ? AND turn = ? AND ordinal = ?",  # noqa: S608
        [
            (value, session_id, turn, ordinal)
            for (turn, phase, ordinal), value in values.items()
            if phase == Phase.RESULT
        ],
    )


def clear_places(connection: Connection, session_id: str) -> None:
    """Forget which message carries each result, and all user edits."""
    connection.execute(
        "UPDATE calls SET place = NULL, wish = NULL"
        " WHERE session_id = ? AND (place IS NOT NULL OR wish IS NOT NULL)",
        (session_id,),
    )


def count_by_session(connection: Connection) -> dict[str, int]:
    """Return the number of calls of each session that has any."""
    rows = connection.execute("SELECT session_id, count(*) FROM calls GROUP BY session_id")
    return dict(rows.fetchall())


def pinned_sessions(connection: Connection) -> set[str]:
    """Return the ids of the sessions that have a pinned result."""
    found = "SELECT DISTINCT session_id FROM calls INDEXED BY calls_pinned WHERE pinned = 1"
    return {row[0] for row in connection.execute(found)}


def delete_some(connection: Connection, session_id: str) -> int:
    """Delete up to 50 calls of a session; return the number deleted."""
    return connection.execute(
        "DELETE FROM calls WHERE rowid IN (SELECT rowid FROM calls WHERE session_id = ? LIMIT 50)",
        (session_id,),
    ).rowcount
