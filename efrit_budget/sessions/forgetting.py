"""Removing what a session holds, a part at a time, so that nobody waits long for the database."""

from __future__ import annotations

import json
import sqlite3
import time

from efrit_budget.storage.database import Database

ROWS = 50
"""Calls, replies or results in a part."""
FILES = 5
"""Changes in a part: each may hold a file twice."""


def mark(connection: sqlite3.Connection, session_id: str, why: str) -> None:
    """Close a session whose contents are to go; its line stays and says why."""
    now = time.time()
    connection.execute(
        "UPDATE sessions SET purged = ?, closed = coalesce(closed, ?), note = ?, expiring = 1"
        " WHERE id = ?",
        (now, now, why, session_id),
    )


def remove_marked(database: Database, session_id: str) -> None:
    """Remove what a marked session holds."""
    while remove_part(database, session_id):
        pass


def remove_part(database: Database, session_id: str) -> bool:
    """Remove some of what a marked session holds; false where nothing is left to remove."""
    with database.reading() as connection:
        if not _is_marked(connection, session_id):
            return False
    with database.writing() as connection:
        if not _is_marked(connection, session_id):
            return False
        if not any(remove(connection, session_id) for remove in (_calls, _results, _changes)):
            _rest(connection, session_id)
    return True


def _is_marked(connection: sqlite3.Connection, session_id: str) -> bool:
    row = connection.execute("SELECT expiring FROM sessions WHERE id = ?", (session_id,)).fetchone()
    return row is not None and bool(row["expiring"])


def _calls(connection: sqlite3.Connection, session_id: str) -> int:
    """Remove some calls and some of what was said; give how many."""
    removed = 0
    for table in ("calls", "segments"):
        removed += connection.execute(
            f"DELETE FROM {table} WHERE rowid IN"  # noqa: S608  own names
            f" (SELECT rowid FROM {table} WHERE session_id = ? LIMIT ?)",
            (session_id, ROWS),
        ).rowcount
    return removed


def _results(connection: sqlite3.Connection, session_id: str) -> int:
    """Remove some results, and their texts unless other results hold them too."""
    rows = connection.execute(
        "SELECT number, blob FROM results WHERE session_id = ? LIMIT ?", (session_id, ROWS)
    ).fetchall()
    connection.executemany(
        "DELETE FROM results WHERE session_id = ? AND number = ?",
        [(session_id, row["number"]) for row in rows],
    )
    connection.execute(
        "DELETE FROM blobs WHERE hash IN (SELECT value FROM json_each(?))"
        " AND NOT EXISTS (SELECT 1 FROM results WHERE blob = blobs.hash)",
        (json.dumps([row["blob"] for row in rows]),),
    )
    return len(rows)


def _changes(connection: sqlite3.Connection, session_id: str) -> int:
    """Remove some changes; a trigger removes the contents that no other change holds."""
    return connection.execute(
        "DELETE FROM changes WHERE session_id = ?1 AND number IN"
        " (SELECT number FROM changes WHERE session_id = ?1 LIMIT ?2)",
        (session_id, FILES),
    ).rowcount


def _rest(connection: sqlite3.Connection, session_id: str) -> None:
    """Remove the rest, and the mark.

    Handles go on from where they were, so that none comes to name another result.
    """
    row = connection.execute(
        "SELECT next_number FROM windows WHERE session_id = ?", (session_id,)
    ).fetchone()
    for table in ("turns", "windows", "checkpoints"):
        connection.execute(f"DELETE FROM {table} WHERE session_id = ?", (session_id,))  # noqa: S608
    connection.execute(
        "INSERT INTO windows (session_id, next_number) VALUES (?, ?)",
        (session_id, 1 if row is None else row["next_number"]),
    )
    connection.execute("UPDATE sessions SET expiring = 0 WHERE id = ?", (session_id,))
