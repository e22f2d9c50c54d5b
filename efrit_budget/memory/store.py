"""The store of observations: save, find, count and delete."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from efrit_budget.errors import StorageError
from efrit_budget.memory import finding, matching, saving
from efrit_budget.memory.observation import (
    EVERYTHING,
    Draft,
    Filters,
    Observation,
    Record,
    Revision,
    Saved,
    Stats,
    Timeline,
)
from efrit_budget.memory.past import Past, latest_of
from efrit_budget.memory.query import Match, parsed
from efrit_budget.memory.ranking import HALF_LIFE_DAYS, Clock, Parts
from efrit_budget.storage.database import Database

if TYPE_CHECKING:
    from efrit_budget.memory.restoring import Merged

NOTE_WITHIN_MS = 100
"""How long it is tried to count that an observation was read: who reads waits for no writer."""
BATCH = 500


@dataclass(frozen=True)
class Candidate:
    """A matching observation with the parts of its rank."""

    observation: Observation
    parts: Parts


@dataclass(frozen=True)
class Found:
    """The best matches of a query, best first."""

    candidates: list[Candidate]
    total: int
    """How many match, under the same filters and before any limit."""
    any_word: bool = False
    """Whether nothing held all the words, so that those were taken that hold one of them."""


class MemoryStore:
    """The observations in the shared database."""

    def __init__(self, database: Database, half_life_days: float = HALF_LIFE_DAYS) -> None:
        self._database = database
        self._half_life_days = half_life_days

    # Saving

    def save(self, draft: Draft, now: float | None = None) -> Saved:
        """Keep a draft, without what is private in it.

        What was saved minutes ago counts as a duplicate; what has the topic key of another
        takes its place, and the earlier revision stays readable.
        """
        draft = saving.sound(draft)
        moment = time.time() if now is None else now
        with self._database.writing() as connection:
            saved = (
                saving.as_duplicate(connection, draft, moment)
                or saving.as_revision(connection, draft, moment)
                or saving.as_new(connection, draft, moment)
            )
            saving.relate(connection, saved.id, draft.related)
        return saved

    def merge(self, records: Sequence[Record]) -> Merged:
        """Keep records as they were exported, all of them or none."""
        from efrit_budget.memory import restoring  # noqa: PLC0415 - only an import needs it

        with self._database.writing() as connection:
            return restoring.merged(connection, records)

    def delete(self, number: int, now: float | None = None) -> bool:
        """Delete softly: it is found no more, and its row stays; false if it is not there."""
        moment = time.time() if now is None else now
        with self._database.writing() as connection:
            changed = connection.execute(
                "UPDATE observations SET deleted = ? WHERE id = ? AND deleted IS NULL",
                (moment, number),
            )
        return changed.rowcount > 0

    def note_access(self, number: int, now: float | None = None) -> None:
        """Count that an observation was read, where that can be written: it was read even so."""
        moment = time.time() if now is None else now
        with suppress(StorageError), self._database.writing(NOTE_WITHIN_MS) as connection:
            connection.execute(
                "UPDATE observations SET accesses = accesses + 1, accessed = ? WHERE id = ?",
                (moment, number),
            )

    # Reading

    def get(self, number: int) -> Observation | None:
        """Return an observation, even if it is deleted, or None."""
        with self._database.reading() as connection:
            return finding.with_id(connection, number)

    def revisions(self, number: int) -> list[Revision]:
        """Return the earlier versions of an observation, oldest first."""
        with self._database.reading() as connection:
            return finding.revisions(connection, number)

    def related(self, number: int) -> list[tuple[int, str]]:
        """Return ids and titles of related observations, in either direction."""
        with self._database.reading() as connection:
            return finding.related(connection, number)

    def relations(self, number: int) -> list[int]:
        """Return the ids that an observation names, deleted ones included."""
        with self._database.reading() as connection:
            return finding.relations(connection, number)

    def search(
        self,
        query: str,
        filters: Filters = EVERYTHING,
        limit: int = 20,
        *,
        half_life_days: float | None = None,
        now: float | None = None,
    ) -> Found:
        """Return what matches every word of the query, else any word.

        A query without words finds all that the filters let through.
        """
        attempts: list[Match | None] = [*parsed(query).attempts()] or [None]
        clock = Clock(time.time() if now is None else now, half_life_days or self._half_life_days)
        with self._database.reading() as connection:
            for match in attempts:
                found = matching.best(connection, filters, match, limit, clock)
                if found:
                    break
            total = len(found)
            if total == limit:
                total = matching.count_of(connection, filters, match)
        candidates = [Candidate(observation, parts) for observation, parts in found]
        any_word = match is not None and match.any_word and total > 0
        return Found(candidates, total, any_word)

    def count(self, filters: Filters = EVERYTHING) -> int:
        """Return how many observations match the filters."""
        with self._database.reading() as connection:
            return finding.count(connection, filters)

    def recent(
        self, filters: Filters = EVERYTHING, limit: int = 20, offset: int = 0
    ) -> list[Observation]:
        """Return the observations saved last, newest first."""
        with self._database.reading() as connection:
            return finding.latest(connection, filters, limit, offset)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Read everything in the block from one state of the database."""
        with self._database.reading():
            yield

    def every(
        self, filters: Filters = EVERYTHING, *, deleted: bool = False
    ) -> Iterator[Observation]:
        """Yield all observations in id order, a few hundred at a time."""
        last = 0
        while True:
            with self._database.reading() as connection:
                batch = finding.by_id(connection, filters, last, BATCH, deleted=deleted)
            yield from batch
            if len(batch) < BATCH:
                return
            last = batch[-1].id

    def timeline(
        self, number: int, before: int = 5, after: int = 5, filters: Filters = EVERYTHING
    ) -> Timeline | None:
        """Return an observation with its neighbours in the session, or None.

        What was saved outside of sessions stands among what else of its project was.
        """
        with self._database.reading() as connection:
            focus = finding.with_id(connection, number)
            if focus is None or focus.deleted is not None:
                return None
            within = replace(filters, session=focus.session)
            if not focus.session:
                within = replace(within, project=focus.project)
            return finding.around(connection, focus, within, (before, after))

    def stats(self, filters: Filters = EVERYTHING) -> Stats:
        """Return the totals."""
        with self._database.reading() as connection:
            return finding.stats(connection, filters)

    def past(self, project: str | None, but: str, limit: int) -> Past:
        """Return sessions and messages of a project, except one session's."""
        with self._database.reading() as connection:
            return latest_of(connection, project, but, limit)
