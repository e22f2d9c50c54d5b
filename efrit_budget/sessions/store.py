"""The store of sessions."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from efrit_budget.budget.tiers import Limits
from efrit_budget.errors import (
    ConflictError,
    Json,
    SessionClosedError,
    SessionInUseError,
    SessionNotFoundError,
)
from efrit_budget.sessions import deletion, limits
from efrit_budget.sessions.deletion import Contents
from efrit_budget.sessions.ids import new_id
from efrit_budget.storage.database import Database
from efrit_budget.storage.owner import Owner


@dataclass(frozen=True)
class Session:
    """One stored session."""

    id: str
    root: str
    title: str
    limits: Limits
    denied: tuple[str, ...]
    """Tools that the project's settings keep from it."""
    created: float
    touched: float
    closed: float | None
    purged: float | None
    note: str | None

    @property
    def state(self) -> str:
        """Either "open" or "closed"."""
        return "open" if self.closed is None else "closed"

    def summary(self) -> dict[str, Json]:
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


def _session(row: sqlite3.Row) -> Session:
    names = ("id", "root", "title", "created", "touched", "closed", "purged", "note")
    return Session(
        limits=limits.decode(row["limits"]),
        denied=tuple(json.loads(row["denied"])),
        **{name: row[name] for name in names},
    )


def _not_found(session_id: str) -> SessionNotFoundError:
    return SessionNotFoundError(
        f"no session {session_id!r}; session/list shows those there are",
        data={"session_id": session_id},
    )


class SessionStore:
    """Opens, finds and closes sessions."""

    def __init__(self, database: Database, contents: Contents) -> None:
        self._database = database
        self._contents = contents

    @cached_property
    def _owner(self) -> Owner:
        return Owner(self._database.path)

    def open(
        self,
        root: str,
        wanted: Limits,
        denied: Sequence[str] = (),
        session_id: str | None = None,
        *,
        other_limits: bool = False,
    ) -> Session:
        """Begin a session; one of that id on the same root is taken up again instead.

        One that is taken up keeps its limits, unless `other_limits` are meant for it.
        """
        if session_id is not None:
            deletion.remove_marked(self._database, session_id, self._contents)
        with self._database.writing() as connection:
            if session_id is not None and (found := _find(connection, session_id)):
                if other_limits:
                    _set_limits(connection, _check_root(found, root), wanted)
                if self._rival(connection, session_id) is None:
                    self._take_ownership(connection, session_id)
                return _reopen(connection, _check_root(found, root))
            chosen = session_id or _unused_id(connection)
            now = time.time()
            connection.execute(
                "INSERT INTO sessions (id, root, limits, denied, created, touched)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                (chosen, root, limits.encode(wanted), json.dumps(list(denied)), now, now),
            )
            self._take_ownership(connection, chosen)
            return _get(connection, chosen)

    def resume(self, session_id: str, *, take_over: bool = False) -> Session:
        """Take a session up again, a closed one too.

        Where another process works in it, that is refused, unless it is to be taken over.
        """
        deletion.remove_marked(self._database, session_id, self._contents)
        with self._database.writing() as connection:
            found = _get(connection, session_id)
            if not take_over:
                self._check_no_rival(connection, session_id)
            self._take_ownership(connection, session_id)
            return _reopen(connection, found)

    def check_owned(self, session_id: str) -> None:
        """See that no other process works in the session, which may have taken it over."""
        with self._database.reading() as connection:
            self._check_no_rival(connection, session_id)

    def _check_no_rival(self, connection: sqlite3.Connection, session_id: str) -> None:
        if self._rival(connection, session_id) is not None:
            raise SessionInUseError(
                f"session {session_id!r} is in use by another Emacs; end it there first, or "
                "resume it here and take it over",
                data={"session_id": session_id},
            )

    def _rival(self, connection: sqlite3.Connection, session_id: str) -> str | None:
        """Return the owner mark of another live process in the session, or None."""
        owner = _owner_of(connection, session_id)
        is_rival = owner is not None and owner != self._owner.name and self._owner.alive(owner)
        return owner if is_rival else None

    def _take_ownership(self, connection: sqlite3.Connection, session_id: str) -> None:
        connection.execute(
            "UPDATE sessions SET owner = ? WHERE id = ?", (self._owner.name, session_id)
        )

    def end(self) -> None:
        """Give up what marks this process as one that works."""
        if "_owner" in self.__dict__:
            self._owner.close()

    def get(self, session_id: str) -> Session:
        """Return the session with this id."""
        with self._database.reading() as connection:
            return _get(connection, session_id)

    def get_open(self, session_id: str) -> Session:
        """Return the session with this id; raise if it is closed."""
        session = self.get(session_id)
        if session.closed is not None:
            raise SessionClosedError(
                f"session {session_id!r} is closed; session/resume opens it again",
                data={"session_id": session_id},
            )
        return session

    def list(self, root: str | None, *, include_closed: bool) -> list[Session]:
        """Return sessions, most recently used first."""
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT * FROM sessions WHERE (?1 IS NULL OR root = ?1) AND (?2 OR closed IS NULL)"
                " ORDER BY touched DESC, id",
                (root, include_closed),
            ).fetchall()
        return [_session(row) for row in rows]

    def close(self, session_id: str) -> Session:
        """End a session; all it holds is kept."""
        with self._database.writing() as connection:
            _get(connection, session_id)
            connection.execute(
                "UPDATE sessions SET closed = coalesce(closed, ?), owner = NULL WHERE id = ?",
                (time.time(), session_id),
            )
            return _get(connection, session_id)

    def rename(self, session_id: str, title: str, *, by_person: bool = True) -> Session:
        """Give a session another title; one that a person gave keeps it from expiring."""
        with self._database.writing() as connection:
            _get(connection, session_id)
            connection.execute(
                "UPDATE sessions SET title = ?, renamed = ? WHERE id = ?",
                (title, by_person and bool(title), session_id),
            )
            return _get(connection, session_id)

    def delete(self, session_id: str) -> None:
        """Remove a session and all it holds."""
        self.purge(session_id, "it is being deleted")
        with self._database.writing() as connection:
            connection.execute("DELETE FROM sessions WHERE id = ?", (session_id,))

    def purge(self, session_id: str, why: str = "its contents were purged") -> Session:
        """Forget what a session's calls were given and gave; its line stays and says why."""
        with self._database.writing() as connection:
            _get(connection, session_id)
            deletion.mark(connection, session_id, why)
        deletion.remove_marked(self._database, session_id, self._contents)
        return self.get(session_id)


def _find(connection: sqlite3.Connection, session_id: str) -> Session | None:
    row = connection.execute("SELECT * FROM sessions WHERE id = ?", (session_id,)).fetchone()
    return None if row is None else _session(row)


def _owner_of(connection: sqlite3.Connection, session_id: str) -> str | None:
    row = connection.execute("SELECT owner FROM sessions WHERE id = ?", (session_id,)).fetchone()
    owner: str | None = None if row is None else row["owner"]
    return owner


def _get(connection: sqlite3.Connection, session_id: str) -> Session:
    found = _find(connection, session_id)
    if found is None:
        raise _not_found(session_id)
    return found


def _check_root(session: Session, root: str) -> Session:
    if session.root != root:
        raise ConflictError(
            f"session {session.id!r} belongs to {session.root}; resume it, or open another",
            data={"session_id": session.id, "root": session.root},
        )
    return session


def touch(connection: sqlite3.Connection, session_id: str) -> None:
    """Note that the session is in use; raise where it was deleted meanwhile."""
    changed = connection.execute(
        "UPDATE sessions SET touched = ? WHERE id = ?", (time.time(), session_id)
    )
    if not changed.rowcount:
        raise _not_found(session_id)


def _set_limits(connection: sqlite3.Connection, session: Session, wanted: Limits) -> None:
    connection.execute(
        "UPDATE sessions SET limits = ? WHERE id = ?", (limits.encode(wanted), session.id)
    )


def _reopen(connection: sqlite3.Connection, session: Session) -> Session:
    connection.execute(
        "UPDATE sessions SET closed = NULL, touched = ? WHERE id = ?", (time.time(), session.id)
    )
    return _get(connection, session.id)


def _unused_id(connection: sqlite3.Connection) -> str:
    while _find(connection, chosen := new_id()):
        pass
    return chosen
