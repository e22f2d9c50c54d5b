"""Expire old sessions, and make the database file smaller.

A session that was closed, or has not been used for long, loses its contents; its row stays, with
the reason as its note. One that nobody closed expires only after its expiry was announced to the
person at an earlier start. A session that the person named, or pinned a result in, never expires;
nor does one that a live process works in.
"""

import logging
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from sqlite3 import Connection, Row

from efrit_budget.errors import StorageError
from efrit_budget.sessions import rows
from efrit_budget.sessions.store import SessionTables, delete_part, mark_expiring
from efrit_budget.storage import space
from efrit_budget.storage.database import Database
from efrit_budget.storage.owner import Owner

log = logging.getLogger(__name__)

SECONDS_A_DAY = 86_400
NOTICE_DAYS = 7
"""Days between announcing that a session expires and its expiry; at most half of `days`."""
LISTED = 5
"""The most sessions that an announcement names."""
BETWEEN_SECONDS = 0.02
"""The pause between two parts of the deletion, for other writers."""
BEFORE_REWRITE_SECONDS = 2.0
"""The pause between announcing that the file is rewritten and doing so."""
MOST_REWRITTEN_BYTES = 512 * 2**20
"""The largest file of the database, in bytes, that is rewritten while a person may be working."""
REWRITTEN_NOW = (
    "is now rewritten once, so that its file can shrink from here on; for some seconds, what is to "
    "be stored waits."
)
REWRITTEN_BY_HAND = (
    "cannot shrink before it is rewritten once, which takes long: end every Emacs that uses it, "
    "then delete or purge a session with 'efrit-budget sessions'."
)
CUTS_TRIED, BETWEEN_CUTS_SECONDS = 20, 0.25
STOP_SECONDS = 2.0


@dataclass(frozen=True)
class RetentionRules:
    """The age and size limits of stored sessions; with 0 days, none expires by its age."""

    days: int
    max_bytes: int

    def moment_before(self, days: float) -> float:
        """Return the time that was `days` days ago."""
        return time.time() - days * SECONDS_A_DAY


class Retention:
    """Announces sessions that will expire; deletes expired ones in a thread."""

    def __init__(
        self, database: Database, rules: RetentionRules, tables: SessionTables, owner: Owner
    ) -> None:
        self._database = database
        self._rules = rules
        self._tables = tables
        self._owner = owner
        self._started = time.time()
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._again = False
        self._is_rewrite_announced = False

    def begin(self) -> list[str]:
        """Start to delete expired sessions; return announcements for the person."""
        announcements = [*self._announce_expiry(), *self._announce_rewrite()]
        self.tidy()
        return announcements

    def tidy(self) -> None:
        """Start the thread that deletes expired sessions and shrinks the file of the database."""
        with self._lock:
            self._again = True
            if self._thread is None and not self._stopping.is_set():
                self._thread = threading.Thread(target=self._run, name="retention", daemon=True)
                self._thread.start()

    def finish(self) -> None:
        """Wait for the thread, then shrink the file, rewriting it if needed, whatever its size."""
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join()
        self._shrink(most_rewritten=None)

    def stop(self) -> None:
        """Stop the thread after the part that it deletes now; the next process continues there."""
        with self._lock:  # so that `tidy` is not between creating a thread and starting it
            self._stopping.set()
            thread = self._thread
        if thread is not None:
            thread.join(STOP_SECONDS)

    # Announcing

    def _announce_expiry(self) -> list[str]:
        """Return an announcement of sessions that will expire, each session once."""
        if not self._rules.days:
            return []
        days_left = min(NOTICE_DAYS, self._rules.days // 2)
        before = self._rules.moment_before(self._rules.days - days_left)
        with self._database.reading() as connection:
            if not self._unannounced(connection, before):
                return []
        with self._database.writing() as connection:
            found = self._unannounced(connection, before)
            for row in found:
                rows.update(connection, row["id"], told=time.time())
        return [_expiry_text(found, self._rules.days)] if found else []

    def _unannounced(self, connection: Connection, before: float) -> list[Row]:
        found = rows.list_unannounced(connection, before)
        pinned = self._tables.pinned_sessions(connection) if found else set()
        return [row for row in found if row["id"] not in pinned and not self._is_worked_in(row)]

    def _is_worked_in(self, row: Row) -> bool:
        return row["owner"] is not None and self._owner.alive(row["owner"])

    def _announce_rewrite(self) -> list[str]:
        """Return an announcement that a file which cannot shrink is rewritten, or must be."""
        if self._is_rewrite_announced:
            return []
        with self._database.reading() as connection:
            found = space.space_of(connection)
        if found.can_shrink:
            return []
        self._is_rewrite_announced = found.size <= MOST_REWRITTEN_BYTES
        name = f"The database {self._database.path} ({found.size / 2**20:,.0f} MiB)"
        when = REWRITTEN_NOW if self._is_rewrite_announced else REWRITTEN_BY_HAND
        return [f"{name} {when}"]

    # Deleting

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._again or self._stopping.is_set():
                    self._thread = None
                    return
                self._again = False
            try:
                self._delete_and_shrink()
            except StorageError as error:
                log.warning("not all expired sessions could be deleted: %s", error.message)

    def _delete_and_shrink(self) -> None:
        for session_id in self._expiring():
            while delete_part(self._database, session_id, self._tables):
                if self._stopping.wait(BETWEEN_SECONDS):
                    return
        self._shrink()

    def _expiring(self) -> Iterator[str]:
        """Yield sessions whose deletion was interrupted, then mark and yield expired ones."""
        with self._database.reading() as connection:
            interrupted = rows.list_expiring(connection)
        yield from interrupted
        while (session_id := self._mark_next()) is not None:
            yield session_id

    def _mark_next(self) -> str | None:
        """Mark the next expired session; return its id, or None where there is none."""
        with self._database.reading() as connection:
            if self._next_expired(connection) is None:
                return None
        with self._database.writing() as connection:
            found = self._next_expired(connection)
            if found is None:
                return None
            session_id, reason = found
            mark_expiring(connection, session_id, f"its contents expired: {reason}")
        return session_id

    def _next_expired(self, connection: Connection) -> tuple[str, str] | None:
        """Return the session that expires next with the reason, or None."""
        days = self._rules.days
        for row in self._removable(connection):
            if days and row["rest_since"] < self._rules.moment_before(days):
                how = "not used" if row["closed"] is None else "closed"
                return row["id"], f"{how} for {days} days"
        if space.space_of(connection).used > self._rules.max_bytes:
            for row in self._removable(connection):
                return row["id"], "the store was full"
        return None

    def _removable(self, connection: Connection) -> Iterator[Row]:
        """Yield the sessions that may expire, least recently used first."""
        found = rows.list_removable(connection, self._started)
        pinned = self._tables.pinned_sessions(connection) if found else set()
        for row in found:
            is_open = row["closed"] is None
            if row["id"] not in pinned and not (is_open and self._is_worked_in(row)):
                yield row

    # Shrinking

    def _shrink(self, most_rewritten: int | None = MOST_REWRITTEN_BYTES) -> None:
        with self._database.reading() as connection:
            found = space.space_of(connection)
        if not found.can_shrink:
            is_too_large = most_rewritten is not None and found.size > most_rewritten
            if is_too_large or self._stopping.wait(BEFORE_REWRITE_SECONDS):
                return
            space.rewrite(self._database)
        elif found.is_worth_shrinking:
            while space.give_back(self._database):
                if self._stopping.wait(BETWEEN_SECONDS):
                    return
        else:
            return
        for _ in range(CUTS_TRIED):
            if space.cut(self._database) or self._stopping.wait(BETWEEN_CUTS_SECONDS):
                return


def _expiry_text(rows: list[Row], days: int) -> str:
    """Return the announcement that sessions will expire."""
    named = [f"{row['id']} ({row['title']})" if row["title"] else row["id"] for row in rows]
    more = [f"{len(rows) - LISTED} more"] if len(rows) > LISTED else []
    sessions = "1 session" if len(rows) == 1 else f"{len(rows)} sessions"
    due = rows[0]["touched"] + days * SECONDS_A_DAY
    when = f"from {time.strftime('%Y-%m-%d', time.localtime(due))} on"
    return (
        f"{sessions} not used for long will lose their contents, "
        f"{when if due > time.time() else 'when efrit-budget next starts'}: "
        f"{', '.join(named[:LISTED] + more)}. To keep one, rename it, pin a result in it, or "
        "resume it; with retention.days = 0, none expires by its age."
    )
