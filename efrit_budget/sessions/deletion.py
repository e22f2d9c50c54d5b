"""Delete a session's contents in small transactions."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass

from efrit_budget.storage.database import Database

ROWS = 50
"""Results in a part."""
FILES = 5
"""Changes in a part: each may hold a file twice."""


@dataclass(frozen=True)
class Contents:
    """What a room above knows of the contents of sessions."""

    remove_some: Callable[[sqlite3.Connection, str], int]
    """Removes some of a session's contents; returns how many rows."""
    remove_rest: Callable[[sqlite3.Connection, str], None]
    """Removes what is left of them then."""
    pinned_sessions: Callable[[sqlite3.Connection], set[str]]
    """Returns the sessions that a person pinned something in."""


def mark(connection: sqlite3.Connection, session_id: str, why: str) -> None:
    """Close a session whose contents are to go; its line stays and says why."""
    now = time.time()
    connection.execute(
        "UPDATE sessions SET purged = ?, closed = coalesce(closed, ?), note = ?, expiring = 1"
        " WHERE id = ?",
        (now, now, why, session_id),
    )


def remove_marked(database: Database, session_id: str, contents: Contents) -> None:
    """Remove what a marked session holds."""
    while remove_part(database, session_id, contents):
        pass


def remove_part(database: Database, session_id: str, contents: Contents) -> bool:
    """Remove some of what a marked session holds; false where nothing is left to remove."""
    with database.reading() as connection:
        if not _is_marked(connection, session_id):
            return False
    with database.writing() as connection:
        if not _is_marked(connection, session_id):
            return False
        if not any(
            remove(connection, session_id)
            for remove in (contents.remove_some, _remove_results, _remove_changes)
        ):
            _remove_rest(connection, session_id, contents)
    return True


def _is_marked(connection: sqlite3.Connection, session_id: str) -> bool:
    row = connection.execute("SELECT expiring FROM sessions WHERE id = ?", (session_id,)).fetchone()
    return row is not None and bool(row["expiring"])


def _remove_results(connection: sqlite3.Connection, session_id: str) -> int:
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


def _remove_changes(connection: sqlite3.Connection, session_id: str) -> int:
    """Remove some changes; a trigger removes the contents that no other change holds."""
    return connection.execute(
        "DELETE FROM changes WHERE session_id = ?1 AND number IN"
        " (SELECT number FROM changes WHERE session_id = ?1 LIMIT ?2)",
        (session_id, FILES),
    ).rowcount


def _remove_rest(connection: sqlite3.Connection, session_id: str, contents: Contents) -> None:
    """Remove the rest, and the mark."""
    contents.remove_rest(connection, session_id)
    connection.execute("DELETE FROM checkpoints WHERE session_id = ?", (session_id,))
    connection.execute("UPDATE sessions SET expiring = 0 WHERE id = ?", (session_id,))
