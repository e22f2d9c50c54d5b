"""The table `sessions`. All its SQL stands here."""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from sqlite3 import Connection, Row

from efrit_budget.budget.tiers import Limits, Tier, scaled
from efrit_budget.errors import Json, JsonObject, SessionNotFoundError

LIMITS_VERSION = 1
"""The version of stored limits; it changes if a member changes its meaning, not if one is added."""
MAY_EXPIRE = "(purged IS NULL OR touched > purged) AND NOT renamed"
"""Selects sessions that nobody named, and that were never purged or were used since then."""
IS_ANNOUNCED = "coalesce(told >= touched, 0)"
"""Selects sessions whose expiry was announced since they were used last."""


@dataclass(frozen=True)
class Session:
    """A stored session."""

    id: str
    root: str
    title: str
    limits: Limits
    denied: tuple[str, ...]
    """The tools that the settings of the project, or the client, deny to the session."""
    created: float
    touched: float
    closed: float | None
    purged: float | None
    note: str | None

    @property
    def state(self) -> str:
        """Either "open" or "closed"."""
        return "open" if self.closed is None else "closed"

    def summary(self) -> JsonObject:
        """Return the session as lists show it."""
        return {
            "session_id": self.id,
            "title": self.title,
            "root": self.root,
            "state": self.state,
            "created": self.created,
            "touched": self.touched,
            "purged": self.purged is not None,
            "note": self.note,
        }


COLUMNS = [field.name for field in fields(Session)]


def _session(row: Row) -> Session:
    values = {name: row[name] for name in COLUMNS}
    limits, denied = decode_limits(row["limits"]), tuple(json.loads(row["denied"]))
    return Session(**values | {"limits": limits, "denied": denied})


# Limits


def encode_limits(limits: Limits) -> str:
    """Return limits as they are stored."""
    return json.dumps({"version": LIMITS_VERSION, **limits.as_dict()})


@lru_cache(maxsize=64)
def decode_limits(text: str) -> Limits:
    """Return stored limits, also those that another version of this program has stored.

    Unknown members are ignored. A tier that is missing gets its share of the total, as far as the
    other tiers leave it; anything else that is missing gets its default.
    """
    stored: JsonObject = json.loads(text)
    known = {field.name: stored[field.name] for field in fields(Limits) if field.name in stored}
    sizes = {tier: stored[tier] for tier in Tier if tier in stored}
    total = known["total"]
    for tier in (tier for tier in Tier if tier not in sizes):
        sizes[tier] = max(0, min(scaled(total, tier), total - sum(sizes.values())))
    return Limits(**known, tiers=sizes)


# One session


def exists(connection: Connection, session_id: str) -> bool:
    """Return whether there is a session with this id."""
    found = connection.execute("SELECT 1 FROM sessions WHERE id = ?", (session_id,))
    return found.fetchone() is not None


def get(connection: Connection, session_id: str) -> Session:
    """Return the session with this id; raise if there is none."""
    row = connection.execute("SELECT * FROM sessions WHERE id = ?", (session_id,)).fetchone()
    if row is None:
        raise _not_found(session_id)
    return _session(row)


def _not_found(session_id: str) -> SessionNotFoundError:
    return SessionNotFoundError(
        f"no session {session_id!r}; session/list shows those there are",
        data={"session_id": session_id},
    )


def owner_of(connection: Connection, session_id: str) -> str | None:
    """Return the mark of the process that works in a session, or None."""
    row = connection.execute("SELECT owner FROM sessions WHERE id = ?", (session_id,)).fetchone()
    return None if row is None else row["owner"]


def is_expiring(connection: Connection, session_id: str) -> bool:
    """Return whether the contents of a session are being removed."""
    row = connection.execute("SELECT expiring FROM sessions WHERE id = ?", (session_id,)).fetchone()
    return row is not None and bool(row["expiring"])


def insert(
    connection: Connection, session_id: str, root: str, limits: Limits, denied: Sequence[str]
) -> None:
    """Insert a session."""
    now = time.time()
    connection.execute(
        "INSERT INTO sessions (id, root, limits, denied, created, touched)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        (session_id, root, encode_limits(limits), json.dumps(list(denied)), now, now),
    )


def update(connection: Connection, session_id: str, **columns: Json) -> None:
    """Set columns of a session; raise if it was deleted meanwhile."""
    names = ", ".join(f"{name} = ?" for name in columns)
    changed = connection.execute(
        f"UPDATE sessions SET {names} WHERE id = ?",  # noqa: S608  own names
        (*columns.values(), session_id),
    )
    if not changed.rowcount:
        raise _not_found(session_id)


def set_limits(connection: Connection, session_id: str, limits: Limits) -> None:
    """Store other limits of a session; raise if it was deleted meanwhile."""
    update(connection, session_id, limits=encode_limits(limits))


def next_number(connection: Connection, session_id: str, counter: str) -> int:
    """Raise a counter of a session and return it; a number is never given again.

    The counters are the columns `changes` and `checkpoints`.
    """
    row = connection.execute(
        f"UPDATE sessions SET {counter} = {counter} + 1 WHERE id = ? RETURNING {counter}",  # noqa: S608
        (session_id,),
    ).fetchone()
    return int(row[0])


def delete(connection: Connection, session_id: str) -> None:
    """Delete a session."""
    connection.execute("DELETE FROM sessions WHERE id = ?", (session_id,))


# All sessions


def list_used(connection: Connection, root: str | None, *, include_closed: bool) -> list[Session]:
    """Return the sessions of a root, or of all roots, most recently used first."""
    rows = connection.execute(
        "SELECT * FROM sessions WHERE (?1 IS NULL OR root = ?1) AND (?2 OR closed IS NULL)"
        " ORDER BY touched DESC, id",
        (root, include_closed),
    )
    return [_session(row) for row in rows.fetchall()]


def list_expiring(connection: Connection) -> list[str]:
    """Return the ids of the sessions whose contents are being removed."""
    return [row[0] for row in connection.execute("SELECT id FROM sessions WHERE expiring")]


def list_unannounced(connection: Connection, before: float) -> list[Row]:
    """Return open sessions that were not used since `before` and whose expiry is not announced."""
    return connection.execute(
        "SELECT id, title, touched, owner FROM sessions"  # noqa: S608  own words
        f" WHERE closed IS NULL AND touched < ? AND {MAY_EXPIRE} AND NOT {IS_ANNOUNCED}"
        " ORDER BY touched",
        (before,),
    ).fetchall()


def list_removable(connection: Connection, announced_before: float) -> list[Row]:
    """Return sessions closed, or announced before a moment; the least recently used come first."""
    return connection.execute(
        "SELECT id, closed, owner, coalesce(closed, touched) AS rest_since FROM sessions"  # noqa: S608
        f" WHERE {MAY_EXPIRE} AND (closed IS NOT NULL OR {IS_ANNOUNCED} AND told < ?)"
        " ORDER BY touched",
        (announced_before,),
    ).fetchall()
