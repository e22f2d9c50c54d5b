"""Delete the contents of a session in small transactions, so that writers get their turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from sqlite3 import Connection

from efrit_budget.sessions import rows
from efrit_budget.storage.database import Database


@dataclass(frozen=True)
class SessionTables:
    """The functions of other rooms that know the tables of a session's contents."""

    delete_some: Sequence[Callable[[Connection, str], int]]
    """Each deletes some rows of a table and returns how many."""
    delete_rest: Sequence[Callable[[Connection, str], None]]
    """These delete the few rows that are left then."""
    pinned_sessions: Callable[[Connection], set[str]]
    """Returns the sessions that have a pinned result."""


def mark_expiring(connection: Connection, session_id: str, why: str) -> None:
    """Close a session whose contents are to be deleted, with the reason as its note."""
    now, closed = time.time(), rows.get(connection, session_id).closed
    rows.update(connection, session_id, purged=now, closed=closed or now, note=why, expiring=1)


def delete_contents(database: Database, session_id: str, tables: SessionTables) -> None:
    """Delete all contents of a session that is marked as expiring."""
    while delete_part(database, session_id, tables):
        pass


def delete_part(database: Database, session_id: str, tables: SessionTables) -> bool:
    """Delete some contents of a session; return false if it is not marked, or no longer."""
    with database.reading() as connection:
        if not rows.is_expiring(connection, session_id):
            return False
    with database.writing() as connection:
        if not rows.is_expiring(connection, session_id):
            return False
        if not any(delete(connection, session_id) for delete in tables.delete_some):
            for delete_rest in tables.delete_rest:
                delete_rest(connection, session_id)
            rows.update(connection, session_id, expiring=0)
    return True
