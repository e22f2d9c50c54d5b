"""The store of observations: save, search, count and delete."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import wraps
from sqlite3 import Connection
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from efrit_budget.characters import sound_text
from efrit_budget.errors import StorageError
from efrit_budget.memory import rows, saving, searching
from efrit_budget.memory.observation import (
    EVERYTHING,
    Draft,
    Filters,
    Observation,
    ObservationError,
    Record,
    Saved,
    Timeline,
)
from efrit_budget.memory.query import WordMatch, parse_query
from efrit_budget.memory.searching import HALF_LIFE_DAYS, Rank, RankClock
from efrit_budget.storage.database import Database
from efrit_budget.storage.space import cut

if TYPE_CHECKING:
    from efrit_budget.memory.restoring import Merged

P = ParamSpec("P")
T = TypeVar("T")

COUNT_WITHIN_MS = 100
"""The longest wait for other writers, in milliseconds, when a reading is counted."""
BATCH = 500


@dataclass(frozen=True)
class Candidate:
    """An observation that a search found, with its rank."""

    observation: Observation
    rank: Rank


@dataclass(frozen=True)
class SearchResult:
    """The best observations that a search found, best first."""

    candidates: list[Candidate]
    total: int
    """The number of observations that match, whatever the limit."""
    any_word: bool = False
    """Whether the observations match only some of the words, as none matches all."""


def _reading(
    read: Callable[Concatenate[Connection, P], T],
) -> Callable[Concatenate[MemoryStore, P], T]:
    """Return a method of the store that calls `read` in a read transaction."""

    @wraps(read)
    def method(self: MemoryStore, /, *arguments: P.args, **named: P.kwargs) -> T:
        with self._database.reading() as connection:
            return read(connection, *arguments, **named)

    return method


class MemoryStore:
    """Saves and reads the observations in the database that all sessions share."""

    def __init__(self, database: Database, half_life_days: float = HALF_LIFE_DAYS) -> None:
        self._database = database
        self._half_life_days = half_life_days

    # Saving

    def save(self, draft: Draft, now: float | None = None) -> Saved:
        """Save a draft without its private text.

        A content that was saved minutes ago is counted as a duplicate. A draft with the topic key
        of an observation revises that; the earlier revision stays readable.
        """
        draft = saving.clean_draft(draft)
        moment = time.time() if now is None else now
        with self._database.writing() as connection:
            saved = (
                saving.as_duplicate(connection, draft, moment)
                or saving.as_revision(connection, draft, moment)
                or saving.as_new(connection, draft, moment)
            )
            saving.relate(connection, saved.id, draft.related)
        return saved

    def change(self, number: int, fields: Mapping[str, Any], now: float | None = None) -> Saved:
        """Save a new revision of an observation with these fields of its draft changed."""
        moment = time.time() if now is None else now
        with self._database.writing() as connection:
            one = rows.get(connection, number)
            if one is None or one.deleted is not None:
                raise ObservationError(f"there is no observation #{number}; mem_search finds some")
            draft = saving.clean_draft(replace(rows.draft_of(one), **fields))
            saved = saving.revise(connection, number, one.revision + 1, draft, moment)
            saving.relate(connection, number, draft.related)
        return saved

    def merge(self, records: Sequence[Record]) -> Merged:
        """Import exported records, all of them or none."""
        from efrit_budget.memory import restoring  # noqa: PLC0415 - only an import needs it

        with self._database.writing() as connection:
            return restoring.merge(connection, records)

    def delete(self, number: int, now: float | None = None) -> bool:
        """Hide an observation from every search; return false if there is none to hide."""
        moment = time.time() if now is None else now
        with self._database.writing() as connection:
            return rows.delete(connection, number, moment)

    def erase(self, number: int) -> bool:
        """Remove an observation and its revisions from the disk; return false if there is none.

        What sessions stored of the calls that saved it stays with them.
        """
        with self._database.writing() as connection:
            erased = rows.erase(connection, number)
        cut(self._database)
        return erased

    def note_access(self, number: int, now: float | None = None) -> None:
        """Count a reading of an observation, unless other writers keep the database too long."""
        moment = time.time() if now is None else now
        with suppress(StorageError), self._database.writing(COUNT_WITHIN_MS) as connection:
            rows.count_access(connection, number, moment)

    # Reading

    get = _reading(rows.get)
    revisions = _reading(rows.revisions)
    related = _reading(rows.related)
    relations = _reading(rows.relations)
    count = _reading(rows.count)
    recent = _reading(rows.latest)
    stats = _reading(rows.stats)
    recent_sessions = _reading(rows.recent_sessions)
    requests = _reading(rows.search_requests)
    alike = _reading(searching.alike)
    near_words = _reading(searching.near_words)

    def search(
        self,
        query: str,
        filters: Filters = EVERYTHING,
        limit: int = 20,
        *,
        half_life_days: float | None = None,
        now: float | None = None,
    ) -> SearchResult:
        """Return the best observations with every word of the query, or with any if none has all.

        A query without words matches everything under the filters.
        """
        attempts: list[WordMatch | None] = [*parse_query(query).attempts()] or [None]
        moment = time.time() if now is None else now
        clock = RankClock(moment, half_life_days or self._half_life_days)
        with self._database.reading() as connection:
            for match in attempts:
                found = searching.best(connection, filters, match, limit, clock)
                if found:
                    break
            total = len(found)
            if total == limit:
                total = searching.count_matches(connection, filters, match)
            topic = rows.with_topic(connection, sound_text(query).strip(), filters)
            found, total = searching.put_first(topic, found, total, limit, clock)
        candidates = [Candidate(observation, rank) for observation, rank in found]
        any_word = match is not None and match.any_word and total > 0
        return SearchResult(candidates, total, any_word)

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
                batch = rows.after_id(connection, filters, last, BATCH, deleted=deleted)
            yield from batch
            if len(batch) < BATCH:
                return
            last = batch[-1].id

    def timeline(
        self, number: int, before: int = 5, after: int = 5, filters: Filters = EVERYTHING
    ) -> Timeline | None:
        """Return an observation with those saved before and after it in its session, or None.

        An observation of no session is shown among the others of its project without a session.
        """
        with self._database.reading() as connection:
            focus = rows.get(connection, number)
            if focus is None or focus.deleted is not None:
                return None
            within = replace(filters, session=focus.session)
            if not focus.session:
                within = replace(within, project=focus.project)
            return rows.timeline(connection, focus, within, (before, after))
