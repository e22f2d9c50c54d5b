"""Expire old sessions.

A session that was closed, or has not been used for long, loses its contents; its line stays and
says so. One that nobody closed goes only after the person was told, at a start before. What the
person gave a name, or pinned something in, stays; so does what any process works in.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from efrit_budget.errors import StorageError
from efrit_budget.sessions import deletion
from efrit_budget.sessions.deletion import Contents
from efrit_budget.storage import space
from efrit_budget.storage.database import Database
from efrit_budget.storage.owner import Owner

log = logging.getLogger(__name__)

SECONDS_A_DAY = 86_400
NOTICE_DAYS = 7
"""How long before its time a session is told of, where efrit is used meanwhile."""
LISTED = 5
"""How many of them are named."""
BETWEEN_SECONDS = 0.02
"""Between two parts of the work, so that writers come in between."""
BEFORE_REWRITE_SECONDS = 2.0
"""Between saying that the file is rewritten and doing so."""
MOST_REWRITTEN_BYTES = 512 * 2**20
"""The largest file that is rewritten while somebody works."""
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

MAY_GO = "(purged IS NULL OR touched > purged) AND NOT renamed"
"""A session that was purged may have been taken up again since."""
IS_TOLD = "coalesce(told >= touched, 0)"


@dataclass(frozen=True)
class Rules:
    """The age and size limits of stored sessions; 0 days keep everything."""

    days: int
    max_bytes: int

    def before(self, days: float) -> float:
        """Return the moment so many days ago."""
        return time.time() - days * SECONDS_A_DAY


class Retention:
    """Deletes expired sessions in a thread and announces it beforehand."""

    def __init__(self, database: Database, rules: Rules, contents: Contents) -> None:
        self._database = database
        self._rules = rules
        self._contents = contents
        self._started = time.time()
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._again = False
        self._is_announced = False

    @cached_property
    def _owner(self) -> Owner:
        return Owner(self._database.path)

    def begin(self) -> list[str]:
        """Begin to remove what is due; gives what the person is to be told."""
        notices = [*self._tell(), *self._announce_rewriting()]
        self.tidy()
        return notices

    def tidy(self) -> None:
        """Have the thread remove what is due, and make the file smaller."""
        with self._lock:
            self._again = True
            if self._thread is None and not self._stopping.is_set():
                self._thread = threading.Thread(target=self._run, name="retention", daemon=True)
                self._thread.start()

    def finish(self) -> None:
        """Wait until all of it is done; a file of any size is rewritten for it."""
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join()
        self._shrink(most_rewritten=None)

    def stop(self) -> None:
        """End the thread behind the part it works on; the rest is done another time."""
        with self._lock:  # no thread is begun that has not started yet, or begins from now on
            self._stopping.set()
            thread = self._thread
        if thread is not None:
            thread.join(STOP_SECONDS)
        if "_owner" in self.__dict__:
            self._owner.close()

    # Telling

    def _tell(self) -> list[str]:
        """Tell of the sessions that will go, each once."""
        if not self._rules.days:
            return []
        notice = min(NOTICE_DAYS, self._rules.days // 2)
        before = self._rules.before(self._rules.days - notice)
        if not self._not_told(before):
            return []
        with self._database.writing() as connection:
            rows = self._to_tell(connection, before)
            connection.executemany(
                "UPDATE sessions SET told = ? WHERE id = ?",
                [(time.time(), row["id"]) for row in rows],
            )
        return [_notice(rows, self._rules.days)] if rows else []

    def _not_told(self, before: float) -> bool:
        with self._database.reading() as connection:
            return bool(self._to_tell(connection, before))

    def _to_tell(self, connection: sqlite3.Connection, before: float) -> list[sqlite3.Row]:
        rows = connection.execute(
            "SELECT id, title, touched, owner FROM sessions"  # noqa: S608  own words
            f" WHERE closed IS NULL AND touched < ? AND {MAY_GO} AND NOT {IS_TOLD}"
            " ORDER BY touched",
            (before,),
        ).fetchall()
        pinned = self._contents.pinned_sessions(connection) if rows else set()
        return [row for row in rows if row["id"] not in pinned and not self._is_worked_in(row)]

    def _is_worked_in(self, row: sqlite3.Row) -> bool:
        return row["owner"] is not None and self._owner.alive(row["owner"])

    def _announce_rewriting(self) -> list[str]:
        """Say that a file which cannot shrink is rewritten, where it is."""
        if self._is_announced:
            return []
        with self._database.reading() as connection:
            found = space.space_of(connection)
        if found.can_shrink:
            return []
        self._is_announced = found.size <= MOST_REWRITTEN_BYTES
        name = f"The database {self._database.path} ({found.size / 2**20:,.0f} MiB)"
        when = REWRITTEN_NOW if self._is_announced else REWRITTEN_BY_HAND
        return [f"{name} {when}"]

    # Removing

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._again or self._stopping.is_set():
                    self._thread = None
                    return
                self._again = False
            try:
                self._remove_and_shrink()
            except StorageError as error:
                log.warning("not all that is due could be removed: %s", error.message)

    def _remove_and_shrink(self) -> None:
        for session_id in self._due():
            while deletion.remove_part(self._database, session_id, self._contents):
                if self._stopping.wait(BETWEEN_SECONDS):
                    return
        self._shrink()

    def _due(self) -> Iterator[str]:
        """Mark the sessions that go, one after the other."""
        yield from self._marked()
        while (found := self._mark_next()) is not None:
            yield found

    def _marked(self) -> list[str]:
        """Return the sessions that a process began to empty."""
        with self._database.reading() as connection:
            rows = connection.execute("SELECT id FROM sessions WHERE expiring").fetchall()
        return [row["id"] for row in rows]

    def _mark_next(self) -> str | None:
        with self._database.reading() as connection:
            if self._next(connection) is None:
                return None
        with self._database.writing() as connection:
            found = self._next(connection)
            if found is not None:
                deletion.mark(connection, found[0], f"its contents expired: {found[1]}")
        return None if found is None else found[0]

    def _next(self, connection: sqlite3.Connection) -> tuple[str, str] | None:
        """Return the session that is to go next, and why."""
        days = self._rules.days
        for row in self._at_rest(connection):
            if days and row["rest_since"] < self._rules.before(days):
                how = "not used" if row["closed"] is None else "closed"
                return row["id"], f"{how} for {days} days"
        if space.space_of(connection).used > self._rules.max_bytes:
            for row in self._at_rest(connection):
                return row["id"], "the store was full"
        return None

    def _at_rest(self, connection: sqlite3.Connection) -> Iterator[sqlite3.Row]:
        """Yield sessions that may expire, least recently used first."""
        rows = connection.execute(
            "SELECT id, closed, owner, coalesce(closed, touched) AS rest_since FROM sessions"  # noqa: S608
            f" WHERE {MAY_GO} AND (closed IS NOT NULL OR {IS_TOLD} AND told < ?)"
            " ORDER BY touched",
            (self._started,),
        ).fetchall()
        pinned = self._contents.pinned_sessions(connection) if rows else set()
        for row in rows:
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


def _notice(rows: list[sqlite3.Row], days: int) -> str:
    """Return the notice for the person."""
    named = [f"{row['id']} ({row['title']})" if row["title"] else row["id"] for row in rows]
    more = [f"{len(rows) - LISTED} more"] if len(rows) > LISTED else []
    sessions = "1 session" if len(rows) == 1 else f"{len(rows)} sessions"
    due = rows[0]["touched"] + days * SECONDS_A_DAY
    when = f"from {time.strftime('%Y-%m-%d', time.localtime(due))} on"
    return (
        f"{sessions} not used for long will lose what they hold, "
        f"{when if due > time.time() else 'when efrit-budget next starts'}: "
        f"{', '.join(named[:LISTED] + more)}. To keep one, rename it, pin a result in it, or "
        "resume it; to keep all for good, set retention.days = 0."
    )
