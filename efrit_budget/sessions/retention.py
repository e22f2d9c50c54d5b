"""What is kept, and for how long: whole closed sessions go, an open one is never touched."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator

from efrit_budget.sessions.store import forget
from efrit_budget.storage.database import Database

SECONDS_A_DAY = 86_400
HOLDS_SOMETHING = "(purged IS NULL OR touched > purged)"
"""A session that was purged may have been taken up again since."""


def expire(database: Database, days: int, max_bytes: int) -> list[str]:
    """Forget the contents of sessions that are too old, and of the oldest while there is too much.

    The session's line stays and says so. Gives the ids of the sessions that went.
    """
    if not _anything_due(database, days, max_bytes):
        return []
    with database.writing() as connection:
        return [
            *_forget_all(connection, _too_old(connection, days), f"closed for {days} days"),
            *_forget_all(connection, _too_much(connection, max_bytes), "the store was full"),
        ]


def _anything_due(database: Database, days: int, max_bytes: int) -> bool:
    with database.reading() as connection:
        too_old = next(_too_old(connection, days), None)
        return too_old is not None or _bytes_used(connection) > max_bytes


def _too_old(connection: sqlite3.Connection, days: int) -> Iterator[str]:
    before = time.time() - days * SECONDS_A_DAY
    for row in connection.execute(
        f"SELECT id FROM sessions WHERE closed < ? AND {HOLDS_SOMETHING} ORDER BY touched",  # noqa: S608
        (before,),
    ).fetchall():
        yield row["id"]


def _too_much(connection: sqlite3.Connection, max_bytes: int) -> Iterator[str]:
    """Closed sessions, least recently used first, for as long as there is too much."""
    for row in connection.execute(
        "SELECT id FROM sessions"  # noqa: S608  own words
        f" WHERE closed IS NOT NULL AND {HOLDS_SOMETHING} ORDER BY touched"
    ).fetchall():
        if _bytes_used(connection) <= max_bytes:
            return
        yield row["id"]


def _forget_all(connection: sqlite3.Connection, sessions: Iterator[str], why: str) -> Iterator[str]:
    for session_id in sessions:
        forget(connection, session_id, f"its contents expired: {why}")
        yield session_id


def _bytes_used(connection: sqlite3.Connection) -> int:
    """The size of what the database holds, free pages left out."""
    pages, free, size = (
        connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)
