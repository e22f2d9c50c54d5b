"""File contents in the database, each stored once."""

from __future__ import annotations

import hashlib
import sqlite3
import zlib
from dataclasses import dataclass

from efrit_budget.changes.errors import ChangeError

COMPRESSION_LEVEL = 1


@dataclass(frozen=True)
class Image:
    """A content prepared for storage before the transaction."""

    sha256: str
    size: int
    data: bytes
    packed: bool
    """Not where the same was stored already when it was made ready."""


def digest(data: bytes) -> str:
    """Return the hash that names a content."""
    return hashlib.sha256(data).hexdigest()


def image(connection: sqlite3.Connection, data: bytes | None) -> Image | None:
    """Make a content ready; None is no content."""
    if data is None:
        return None
    sha256 = digest(data)
    if _is_stored(connection, sha256):
        return Image(sha256, len(data), data, packed=False)
    return Image(sha256, len(data), _compressed(data), packed=True)


def _compressed(data: bytes) -> bytes:
    return zlib.compress(data, COMPRESSION_LEVEL)


def _is_stored(connection: sqlite3.Connection, sha256: str) -> bool:
    row = connection.execute("SELECT 1 FROM images WHERE sha256 = ?", (sha256,)).fetchone()
    return row is not None


def hold(
    connection: sqlite3.Connection, session_id: str, number: int, role: str, ready: Image | None
) -> None:
    """Store a content for a change."""
    if ready is None:
        return
    if not _is_stored(connection, ready.sha256):
        connection.execute(
            "INSERT INTO images (sha256, size, data) VALUES (?, ?, ?)",
            (ready.sha256, ready.size, ready.data if ready.packed else _compressed(ready.data)),
        )
    connection.execute(
        "INSERT INTO held_images (session_id, number, role, sha256) VALUES (?, ?, ?, ?)",
        (session_id, number, role, ready.sha256),
    )


def content(connection: sqlite3.Connection, sha256: str | None) -> bytes | None:
    """Return the content stored under a hash."""
    if sha256 is None:
        return None
    row = connection.execute("SELECT data FROM images WHERE sha256 = ?", (sha256,)).fetchone()
    if row is None:
        raise ChangeError("what the file held is kept no more: the session was purged meanwhile")
    return zlib.decompress(row["data"])
