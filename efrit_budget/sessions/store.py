"""Open, find, close and delete sessions.

The contents of a session are deleted in small transactions, so that other writers need not wait.
"""

import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from sqlite3 import Connection

from efrit_budget.budget.tiers import Limits
from efrit_budget.errors import ConflictError, SessionClosedError, SessionInUseError
from efrit_budget.sessions import rows
from efrit_budget.sessions.rows import Session
from efrit_budget.storage.database import Database
from efrit_budget.storage.owner import Owner

ID_ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"
"""Letters and digits without i, l, o, 0 and 1, which look alike."""
ID_LENGTH = 5
ID_PATTERN = r"^[a-z0-9][a-z0-9-]{0,31}$"


@dataclass(frozen=True)
class SessionTables:
    """The functions of other rooms that know the tables of a session's contents."""

    delete_some: Sequence[Callable[[Connection, str], int]]
    """Each deletes some rows of a table and returns how many."""
    delete_rest: Sequence[Callable[[Connection, str], None]]
    """Each deletes the few rows of a table that `delete_some` leaves."""
    pinned_sessions: Callable[[Connection], set[str]]
    """Returns the ids of the sessions that have a pinned result."""


class SessionStore:
    """The stored sessions, and this process as the owner of those it works in."""

    def __init__(self, database: Database, tables: SessionTables, owner: Owner) -> None:
        self._database = database
        self._tables = tables
        self._owner = owner

    def open(
        self,
        root: str,
        limits: Limits,
        denied: Sequence[str] = (),
        session_id: str | None = None,
        *,
        other_limits: bool = False,
    ) -> Session:
        """Open a new session, or the one with this id again; raise if that has another root.

        A session that exists keeps its limits, unless `other_limits` is true.
        """
        if session_id is not None:
            delete_contents(self._database, session_id, self._tables)
        with self._database.writing() as connection:
            if session_id is not None and rows.exists(connection, session_id):
                found = rows.get(connection, session_id)
                _require_root(found, root)
                if other_limits:
                    rows.set_limits(connection, found.id, limits)
                if self._rival(connection, found.id) is None:
                    rows.update(connection, found.id, owner=self._owner.name)
                return _reopen(connection, found.id)
            chosen = session_id or _unused_id(connection)
            rows.insert(connection, chosen, root, limits, denied)
            rows.update(connection, chosen, owner=self._owner.name)
            return rows.get(connection, chosen)

    @property
    def owner(self) -> str:
        """The mark of this process as the owner of sessions."""
        return self._owner.name

    def resume(
        self, session_id: str, *, take_over: bool = False, former: str | None = None
    ) -> Session:
        """Open a session again, closed or not.

        Raise if another live process works in it, unless it is to be taken over, or the mark of
        that process is `former`.
        """
        delete_contents(self._database, session_id, self._tables)
        with self._database.writing() as connection:
            rows.get(connection, session_id)
            is_former = former is not None and rows.owner_of(connection, session_id) == former
            if not (take_over or is_former):
                self._require_no_rival(connection, session_id)
            rows.update(connection, session_id, owner=self._owner.name)
            return _reopen(connection, session_id)

    def check_owned(self, session_id: str) -> None:
        """Raise if another live process works in the session, such as one that took it over."""
        with self._database.reading() as connection:
            self._require_no_rival(connection, session_id)

    def _require_no_rival(self, connection: Connection, session_id: str) -> None:
        if self._rival(connection, session_id) is not None:
            raise SessionInUseError(
                f"session {session_id!r} is in use by another Emacs; end it there first, or "
                "resume it here and take it over",
                data={"session_id": session_id},
            )

    def _rival(self, connection: Connection, session_id: str) -> str | None:
        """Return the mark of another live process that works in the session, or None."""
        owner = rows.owner_of(connection, session_id)
        is_rival = owner is not None and owner != self._owner.name and self._owner.alive(owner)
        return owner if is_rival else None

    def get(self, session_id: str) -> Session:
        """Return the session with this id; raise if there is none."""
        with self._database.reading() as connection:
            return rows.get(connection, session_id)

    def get_open(self, session_id: str) -> Session:
        """Return the session with this id; raise if there is none, or it is closed."""
        with self._database.reading() as connection:
            session = rows.get(connection, session_id)
        if session.closed is not None:
            raise SessionClosedError(
                f"session {session_id!r} is closed; session/resume opens it again",
                data={"session_id": session_id},
            )
        return session

    def list(self, root: str | None, *, include_closed: bool) -> list[Session]:
        """Return the sessions of a root, or of all roots, most recently used first."""
        with self._database.reading() as connection:
            return rows.list_used(connection, root, include_closed=include_closed)

    def change_limits(self, session_id: str, change: Callable[[Limits], Limits]) -> Session:
        """Give a session the limits that `change` makes of its own."""
        with self._database.writing() as connection:
            limits = rows.get(connection, session_id).limits
            rows.set_limits(connection, session_id, change(limits))
            return rows.get(connection, session_id)

    def close(self, session_id: str) -> Session:
        """Close a session; its contents stay."""
        with self._database.writing() as connection:
            closed = rows.get(connection, session_id).closed or time.time()
            rows.update(connection, session_id, closed=closed, owner=None)
            return rows.get(connection, session_id)

    def rename(self, session_id: str, title: str, *, by_person: bool = True) -> Session:
        """Give a session another title; a session that the person named never expires."""
        with self._database.writing() as connection:
            rows.update(connection, session_id, title=title, renamed=by_person and bool(title))
            return rows.get(connection, session_id)

    def delete(self, session_id: str) -> None:
        """Delete a session with its contents."""
        self.purge(session_id, "it is being deleted")
        with self._database.writing() as connection:
            rows.delete(connection, session_id)

    def purge(self, session_id: str, why: str = "its contents were purged") -> Session:
        """Delete the contents of a session; its row stays, with the reason as its note."""
        with self._database.writing() as connection:
            mark_expiring(connection, session_id, why)
        delete_contents(self._database, session_id, self._tables)
        return self.get(session_id)


def _require_root(session: Session, root: str) -> None:
    if session.root != root:
        raise ConflictError(
            f"session {session.id!r} belongs to {session.root}; resume it, or open another",
            data={"session_id": session.id, "root": session.root},
        )


def _reopen(connection: Connection, session_id: str) -> Session:
    rows.update(connection, session_id, closed=None, touched=time.time())
    return rows.get(connection, session_id)


def _unused_id(connection: Connection) -> str:
    """Return a random id that no session has."""
    while True:
        chosen = "".join(secrets.choice(ID_ALPHABET) for _ in range(ID_LENGTH))
        if not rows.exists(connection, chosen):
            return chosen


# Deleting


def mark_expiring(connection: Connection, session_id: str, why: str) -> None:
    """Mark a session whose contents are to be deleted, close it, and set `why` as its note."""
    now, closed = time.time(), rows.get(connection, session_id).closed
    rows.update(connection, session_id, purged=now, closed=closed or now, note=why, expiring=1)


def delete_contents(database: Database, session_id: str, tables: SessionTables) -> None:
    """Delete all contents of a session that is marked as expiring."""
    while delete_part(database, session_id, tables):
        pass


def delete_part(database: Database, session_id: str, tables: SessionTables) -> bool:
    """Delete some contents of a session that is marked as expiring; return false if it is not."""
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
