"""Results in the database: each whole, under its number, its text stored once."""

from __future__ import annotations

import hashlib
import sqlite3
import time

from efrit_budget.results.body import Body, packed_marks, packed_text, unpacked
from efrit_budget.results.tokens import LISTED, TokenError, handle


def put(connection: sqlite3.Connection, session_id: str, number: int, tool: str, body: Body) -> str:
    """Store a result; gives the hash of its text."""
    encoded = body.text.encode()
    digest = hashlib.blake2b(encoded, digest_size=16).hexdigest()
    known = connection.execute("SELECT 1 FROM blobs WHERE hash = ?", (digest,)).fetchone()
    if known is None:
        connection.execute(
            "INSERT INTO blobs (hash, size, data) VALUES (?, ?, ?)",
            (digest, len(encoded), packed_text(body)),
        )
    connection.execute(
        "INSERT INTO results (session_id, number, blob, tool, created, marks)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        (session_id, number, digest, tool, time.time(), packed_marks(body)),
    )
    return digest


def get(connection: sqlite3.Connection, session_id: str, number: int) -> Body:
    """A stored result."""
    row = connection.execute(
        "SELECT blobs.data, results.marks FROM results JOIN blobs ON blobs.hash = results.blob"
        " WHERE session_id = ? AND number = ?",
        (session_id, number),
    ).fetchone()
    if row is None:
        raise TokenError(f"this session has no result {handle(number)}; {LISTED}")
    return unpacked(row["data"], row["marks"])


def holds(connection: sqlite3.Connection, session_id: str, number: int) -> bool:
    """Whether the session has a result of that number."""
    row = connection.execute(
        "SELECT 1 FROM results WHERE session_id = ? AND number = ?", (session_id, number)
    ).fetchone()
    return row is not None


def blob_of(connection: sqlite3.Connection, session_id: str, number: int) -> str:
    """The hash of a stored result's text."""
    row = connection.execute(
        "SELECT blob FROM results WHERE session_id = ? AND number = ?", (session_id, number)
    ).fetchone()
    return str(row["blob"])


def tool_of(connection: sqlite3.Connection, session_id: str, number: int) -> str:
    """The tool that gave a result."""
    row = connection.execute(
        "SELECT tool FROM results WHERE session_id = ? AND number = ?", (session_id, number)
    ).fetchone()
    return str(row["tool"])


def drop_unused_blobs(connection: sqlite3.Connection) -> None:
    """Free the texts that no result holds any more."""
    connection.execute(
        "DELETE FROM blobs WHERE NOT EXISTS (SELECT 1 FROM results WHERE blob = blobs.hash)"
    )
