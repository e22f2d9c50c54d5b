"""The contents of sessions, for the room that expires and deletes them."""

from __future__ import annotations

import sqlite3

from efrit_budget.conversation import calls, segments, turns, windows
from efrit_budget.conversation.windows import Window

ROWS = 50
"""Rows of a table that are removed at once."""


def remove_some(connection: sqlite3.Connection, session_id: str) -> int:
    """Remove some calls and segments of a session; return how many."""
    return sum(table.delete_some(connection, session_id, ROWS) for table in (calls, segments))


def remove_rest(connection: sqlite3.Connection, session_id: str) -> None:
    """Remove the turns of a session, and empty its window.

    Handles go on from where they were, so that none comes to name another result.
    """
    turns.delete(connection, session_id)
    number = windows.load(connection, session_id).next_number
    windows.save(connection, Window(session_id, next_number=number))
