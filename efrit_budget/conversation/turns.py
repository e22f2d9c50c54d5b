"""The table `turns`: the model calls of a session. All its SQL stands here."""

from sqlite3 import Connection, Row


def insert(  # noqa: PLR0913  the columns
    connection: Connection,
    session_id: str,
    number: int,
    *,
    epoch: int,
    model: str,
    provider: str,
    raw: int,
    exact: int,
    request: bytes | None,
    begun: float,
) -> None:
    """Insert a turn that begins."""
    connection.execute(
        "INSERT INTO turns (session_id, number, epoch, model, provider, begun, raw, exact, request)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (session_id, number, epoch, model, provider, begun, raw, exact, request),
    )


def get(connection: Connection, session_id: str, number: int) -> Row | None:
    """Return the row of a turn, or None."""
    statement = "SELECT * FROM turns WHERE session_id = ? AND number = ?"
    row: Row | None = connection.execute(statement, (session_id, number)).fetchone()
    return row


def end(
    connection: Connection,
    session_id: str,
    number: int,
    *,
    aborted: bool,
    usage: str,
    stop_reason: str | None,
    ended: float,
) -> None:
    """Store the end of a turn."""
    connection.execute(
        "UPDATE turns SET ended = ?, aborted = ?, usage = ?, stop_reason = ?"
        " WHERE session_id = ? AND number = ?",
        (ended, aborted, usage, stop_reason, session_id, number),
    )


def find_previous(connection: Connection, turn: Row) -> Row | None:
    """Return the latest ended turn before `turn` with the same epoch and model, or None."""
    row: Row | None = connection.execute(
        "SELECT number, raw, exact, usage FROM turns WHERE session_id = ? AND number < ?"
        " AND epoch = ? AND model = ? AND ended IS NOT NULL ORDER BY number DESC LIMIT 1",
        (turn["session_id"], turn["number"], turn["epoch"], turn["model"]),
    ).fetchone()
    return row


def add_raw(connection: Connection, session_id: str, number: int, raw: int) -> None:
    """Add `raw` tokens to the estimate of a turn's prompt."""
    connection.execute(
        "UPDATE turns SET raw = raw + ? WHERE session_id = ? AND number = ?",
        (raw, session_id, number),
    )


def list_usage(connection: Connection, session_id: str) -> list[Row]:
    """Return model, provider, usage and `aborted` of the turns that have ended."""
    return connection.execute(
        "SELECT model, provider, usage, aborted FROM turns"
        " WHERE session_id = ? AND usage IS NOT NULL",
        (session_id,),
    ).fetchall()


def find_latest_usage(
    connection: Connection, session_id: str, before: int | None = None
) -> Row | None:
    """Return the latest ended turn that has usage, of those before a turn if given, or None."""
    row: Row | None = connection.execute(
        "SELECT epoch, model, provider, usage, ended FROM turns"
        " WHERE session_id = ? AND usage IS NOT NULL AND (? IS NULL OR number < ?)"
        " ORDER BY number DESC LIMIT 1",
        (session_id, before, before),
    ).fetchone()
    return row


def list_times(connection: Connection, session_id: str) -> dict[int, Row]:
    """Return model, begin and end of each turn, by its number."""
    rows = connection.execute(
        "SELECT number, model, begun, ended FROM turns WHERE session_id = ?", (session_id,)
    )
    return {row["number"]: row for row in rows}


def find_last_time(connection: Connection, session_id: str) -> float | None:
    """Return the latest time at which a turn began or ended, or None if there is no turn."""
    statement = "SELECT max(coalesce(ended, begun)) FROM turns WHERE session_id = ?"
    latest: float | None = connection.execute(statement, (session_id,)).fetchone()[0]
    return latest


def delete(connection: Connection, session_id: str) -> None:
    """Delete all turns of a session."""
    connection.execute("DELETE FROM turns WHERE session_id = ?", (session_id,))
