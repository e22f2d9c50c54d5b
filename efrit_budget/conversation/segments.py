"""The table `segments`: user messages, notices and replies. All its SQL stands here."""

from collections.abc import Mapping
from dataclasses import dataclass
from sqlite3 import Connection, Row

from efrit_budget.conversation.pieces import Phase, PieceKey, PieceState
from efrit_budget.errors import Json

EXCERPT_CHARACTERS = 200
INSERT = """
INSERT INTO segments (session_id, turn, phase, role, content, raw, bare_raw, short_raw, exact,
  place, state, last_use)
VALUES (:session_id, :turn, :phase, :role, :content, :raw, :bare_raw, :short_raw, :exact, :place,
  :state, :last_use)
"""
NEW = (
    "session_id = :session AND turn > :first AND turn <= :turn AND state = 'full'"
    f" AND phase <> {Phase.REPLY.value}"
)
TEXTS = (
    "SELECT substr(json_extract(value, '$.text'), 1, ?) FROM json_each(segments.content)"
    " WHERE json_extract(value, '$.type') = 'text'"
)
EXCERPTS = (
    "SELECT turn, phase, role, raw, bare_raw, short_raw, exact, state, last_use,"  # noqa: S608  own words
    f" CASE phase WHEN 0 THEN ({TEXTS} ORDER BY key DESC LIMIT 1)"
    f" ELSE ({TEXTS} ORDER BY key LIMIT 1) END AS begins"
    " FROM segments WHERE session_id = ? ORDER BY turn, phase"
)
"""Selects each row with the beginning of its first text block, or of a user message's last one."""


@dataclass(frozen=True)
class Segment:
    """A user message, notice or reply to insert."""

    session_id: str
    turn: int
    phase: Phase
    role: str
    content: str
    raw: int
    bare_raw: int
    last_use: int
    short_raw: int | None = None
    exact: int | None = None
    place: int | None = None
    state: PieceState = PieceState.FULL


def insert(connection: Connection, segment: Segment) -> None:
    """Insert a user message, notice or reply."""
    connection.execute(INSERT, vars(segment))


def get(connection: Connection, session_id: str, turn: int, phase: Phase) -> Row | None:
    """Return the user message, notice or reply of a turn, as `phase` says, or None."""
    row: Row | None = connection.execute(
        "SELECT role, content, state, place FROM segments"
        " WHERE session_id = ? AND turn = ? AND phase = ?",
        (session_id, turn, phase),
    ).fetchone()
    return row


def list_turn(connection: Connection, session_id: str, turn: int) -> list[Row]:
    """Return the user message and the reply of a turn."""
    return connection.execute(
        "SELECT phase, role, content, state FROM segments"
        " WHERE session_id = ? AND turn = ? AND phase IN (0, 2) ORDER BY phase",
        (session_id, turn),
    ).fetchall()


def list_session(connection: Connection, session_id: str) -> list[Row]:
    """Return all rows of a session in order."""
    return connection.execute(
        "SELECT turn, phase, role, content, state, raw, bare_raw, short_raw FROM segments"
        " WHERE session_id = ? ORDER BY turn, phase",
        (session_id,),
    ).fetchall()


def list_window(connection: Connection, session_id: str) -> list[Row]:
    """Return the sizes, states and message numbers of the rows in the window."""
    return connection.execute(
        "SELECT turn, phase, raw, bare_raw, short_raw, exact, state, last_use, place FROM segments"
        " WHERE session_id = ? AND state <> 'gone'",
        (session_id,),
    ).fetchall()


def list_excerpts(connection: Connection, session_id: str) -> list[Row]:
    """Return all rows with the beginnings of their texts."""
    return connection.execute(
        EXCERPTS, (EXCERPT_CHARACTERS, EXCERPT_CHARACTERS, session_id)
    ).fetchall()


def list_evicted(connection: Connection, session_id: str) -> list[Row]:
    """Return the evicted user messages and replies."""
    return connection.execute(
        "SELECT turn, role, content FROM segments"
        " WHERE session_id = ? AND state = 'gone' AND phase IN (0, 2)",
        (session_id,),
    ).fetchall()


def list_evicted_turns(connection: Connection, session_id: str, most: int) -> list[int]:
    """Return the latest turns that were evicted at least in part, latest first."""
    rows = connection.execute(
        "SELECT DISTINCT turn FROM segments WHERE session_id = ? AND state = 'gone'"
        " AND phase IN (0, 2) ORDER BY turn DESC LIMIT ?",
        (session_id, most),
    ).fetchall()
    return [row["turn"] for row in rows]


def count_evicted(connection: Connection, session_id: str) -> int:
    """Return how many turns were evicted at least in part."""
    row = connection.execute(
        "SELECT count(DISTINCT turn) FROM segments WHERE session_id = ? AND state = 'gone'"
        " AND phase IN (0, 2)",
        (session_id,),
    ).fetchone()
    return int(row[0])


def sum_prompt(connection: Connection, session_id: str) -> tuple[int, int]:
    """Return the estimated and the exactly known tokens of the segments in the window."""
    raw, exact = connection.execute(
        "SELECT coalesce(sum(CASE state WHEN 'compressed' THEN bare_raw WHEN 'short' THEN short_raw"
        "   ELSE CASE WHEN exact IS NULL THEN raw ELSE 0 END END), 0),"
        " coalesce(sum(CASE WHEN state = 'full' THEN coalesce(exact, 0) ELSE 0 END), 0)"
        " FROM segments WHERE session_id = ? AND state <> 'gone'",
        (session_id,),
    ).fetchone()
    return raw, exact


def sum_shrunken(connection: Connection, session_id: str) -> Row:
    """Return what compressed and evicted replies cost in full (`raw`, `exact`) and now (`kept`)."""
    row: Row = connection.execute(
        "SELECT coalesce(sum(CASE WHEN exact IS NULL THEN raw ELSE 0 END), 0) AS raw,"
        " coalesce(sum(exact), 0) AS exact,"
        " coalesce(sum(CASE state WHEN 'compressed' THEN bare_raw WHEN 'short' THEN short_raw"
        "   ELSE 0 END), 0) AS kept"
        " FROM segments WHERE session_id = ? AND phase = ? AND state <> 'full'",
        (session_id, Phase.REPLY),
    ).fetchone()
    return row


def sum_new(connection: Connection, span: Mapping[str, object]) -> int:
    """Return the estimate of the user messages and notices in the turns of `span`."""
    statement = f"SELECT coalesce(sum(raw), 0) FROM segments WHERE {NEW}"  # noqa: S608  own words
    return int(connection.execute(statement, span).fetchone()[0])


def scale_new(connection: Connection, span: Mapping[str, object], times: float) -> None:
    """Multiply the estimates of the user messages and notices in the turns of `span`."""
    connection.execute(
        "UPDATE segments SET raw = CAST(raw * :times AS INTEGER),"  # noqa: S608  own words
        f" bare_raw = CAST(bare_raw * :times AS INTEGER) WHERE {NEW}",
        {**span, "times": times},
    )


def update_pieces(
    connection: Connection, session_id: str, change: str, values: Mapping[PieceKey, Json]
) -> None:
    """Apply the SQL `change` to each message or reply, with its value; ignore keys of results."""
    connection.executemany(
        f"UPDATE segments SET {change} WHERE session_id = ? AND turn = ? AND phase = ?",  # noqa: S608
        [
            (value, session_id, turn, phase)
            for (turn, phase, _), value in values.items()
            if phase != Phase.RESULT
        ],
    )


def clear_places(connection: Connection, session_id: str) -> None:
    """Forget which message carries each user message, notice and reply."""
    connection.execute(
        "UPDATE segments SET place = NULL WHERE session_id = ? AND place IS NOT NULL",
        (session_id,),
    )


def restore_reply(connection: Connection, session_id: str, turn: int, clock: int) -> None:
    """Bring back an evicted reply without its thinking."""
    connection.execute(
        "UPDATE segments SET state = 'compressed', last_use = ? WHERE session_id = ?"
        " AND turn = ? AND phase = 2 AND state = 'gone'",
        (clock, session_id, turn),
    )


def delete_some(connection: Connection, session_id: str) -> int:
    """Delete up to 50 rows of a session; return the number deleted."""
    return connection.execute(
        "DELETE FROM segments WHERE rowid IN"
        " (SELECT rowid FROM segments WHERE session_id = ? LIMIT 50)",
        (session_id,),
    ).rowcount
