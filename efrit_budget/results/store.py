"""Results in the database: one row per number, each text stored once."""

import hashlib
import json
import sqlite3
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass

from efrit_budget.results.body import Body
from efrit_budget.results.encoding import packed_marks, packed_text, unpacked
from efrit_budget.results.tokens import LISTED, TokenError, handle

MOST_CHARACTERS = 24_000_000
WORTH_HOLDING = 50_000
"""The least size, in characters, of a body kept in memory; smaller ones are decoded quickly."""
OFFSET_BYTES = 40
KNOWN = "SELECT 1 FROM blobs WHERE hash = ?"

Key = tuple[str, int, float]
"""A session, the number of a result, and the time at which the result was stored."""


class RecentBodies:
    """The large bodies that were used last, so that their next pages need no decoding.

    A stored result never changes. The time of storing is part of the key, as the id of a deleted
    session may be used again.
    """

    def __init__(self, most_characters: int = MOST_CHARACTERS) -> None:
        self._most = most_characters
        self._held = 0
        self._bodies: OrderedDict[Key, Body] = OrderedDict()
        self._sizes: dict[Key, int] = {}
        self._lock = threading.Lock()

    def get(self, connection: sqlite3.Connection, session_id: str, number: int) -> Body:
        """Return the body of a stored result, from memory if possible; raise if there is none."""
        key = (session_id, number, get_row(connection, session_id, number)["created"])
        with self._lock:
            found = self._bodies.get(key)
            if found is not None:
                self._bodies.move_to_end(key)
                return found
        body = get(connection, session_id, number)
        self.keep(connection, session_id, number, body)
        return body

    def keep(
        self, connection: sqlite3.Connection, session_id: str, number: int, body: Body
    ) -> None:
        """Keep the body of a stored result in memory, if it is large, until others need room."""
        size = len(body.text) + OFFSET_BYTES * (len(body.items) + len(body.headers))
        if size < WORTH_HOLDING:
            return
        key = (session_id, number, get_row(connection, session_id, number)["created"])
        with self._lock:
            self._held += size - self._sizes.pop(key, 0)
            self._bodies[key], self._sizes[key] = body, size
            while self._held > self._most:
                oldest, _ = self._bodies.popitem(last=False)
                self._held -= self._sizes.pop(oldest)


@dataclass(frozen=True)
class Packed:
    """A body prepared for storage."""

    body: Body
    digest: str
    size: int
    marks: bytes | None
    text: bytes | None
    """The encoded text; None if it is stored already."""


def packed(connection: sqlite3.Connection, body: Body) -> Packed:
    """Return a body encoded for storage; as this takes long, call it before the transaction."""
    encoded = body.text.encode()
    digest = hashlib.blake2b(encoded, digest_size=16).hexdigest()
    is_known = connection.execute(KNOWN, (digest,)).fetchone() is not None
    text = None if is_known else packed_text(body)
    return Packed(body, digest, len(encoded), packed_marks(body), text)


def put(
    connection: sqlite3.Connection, session_id: str, number: int, tool: str, ready: Packed
) -> None:
    """Store a result, and its text unless that is stored already."""
    if connection.execute(KNOWN, (ready.digest,)).fetchone() is None:
        connection.execute(
            "INSERT INTO blobs (hash, size, data) VALUES (?, ?, ?)",
            (ready.digest, ready.size, ready.text or packed_text(ready.body)),
        )
    connection.execute(
        "INSERT INTO results (session_id, number, blob, tool, created, marks)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        (session_id, number, ready.digest, tool, time.time(), ready.marks),
    )


def get(connection: sqlite3.Connection, session_id: str, number: int) -> Body:
    """Return the body of a stored result from the database; raise if there is none."""
    row = connection.execute(
        "SELECT blobs.data, results.marks FROM results JOIN blobs ON blobs.hash = results.blob"
        " WHERE session_id = ? AND number = ?",
        (session_id, number),
    ).fetchone()
    if row is None:
        raise _missing(number)
    return unpacked(row["data"], row["marks"])


def find(connection: sqlite3.Connection, session_id: str, number: int) -> sqlite3.Row | None:
    """Return the row of a result without its text, or None."""
    row: sqlite3.Row | None = connection.execute(
        "SELECT blob, tool, created FROM results WHERE session_id = ? AND number = ?",
        (session_id, number),
    ).fetchone()
    return row


def get_row(connection: sqlite3.Connection, session_id: str, number: int) -> sqlite3.Row:
    """Return the row of a result without its text; raise if there is none."""
    row = find(connection, session_id, number)
    if row is None:
        raise _missing(number)
    return row


def _missing(number: int) -> TokenError:
    return TokenError(f"this session has no result {handle(number)}; {LISTED}")


def delete_some(connection: sqlite3.Connection, session_id: str) -> int:
    """Delete up to 50 results of a session, and texts that only they had; return the number."""
    rows = connection.execute(
        "SELECT number, blob FROM results WHERE session_id = ? LIMIT 50",
        (session_id,),
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
