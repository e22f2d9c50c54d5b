"""Reading observations: by id, by words, by time, in their session, in sum."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from efrit_budget.memory.observation import Filters, Observation, Revision, Stats, Timeline
from efrit_budget.memory.ranking import (
    ACCESS,
    DAY,
    HALF_ACCESSES,
    IMPORTANCE,
    MOST_HALVINGS,
    RECENCY,
    Clock,
    Match,
    Parts,
    best,
)
from efrit_budget.memory.rows import conditions, observation_of, revision_of

MATCHING = "SELECT rowid, -rank FROM observations_words WHERE observations_words MATCH :words"
MATCHING_AND_FILTERED = """
SELECT o.id, -w.rank FROM observations_words AS w CROSS JOIN observations AS o ON o.id = w.rowid
WHERE observations_words MATCH :words"""
RANKED = """
SELECT id, updated, importance, accesses FROM observations
WHERE id IN (SELECT value FROM json_each(?))"""
AT_ONCE = 64
MATCHED = "SELECT count(*) FROM observations_words WHERE observations_words MATCH :words"
MATCHED_AND_FILTERED = """
SELECT count(*) FROM observations_words AS w CROSS JOIN observations AS o ON o.id = w.rowid
WHERE observations_words MATCH :words"""
WITHOUT_WORDS = """
SELECT id, 1.0, updated, importance, accesses FROM
  (SELECT *, max(0.0, (:now - updated) / :half_life) AS age FROM observations) AS o
WHERE o.deleted IS NULL"""
BEST_FIRST = """
ORDER BY :importance * o.importance + :access * o.accesses / (o.accesses + :half_accesses)
  + :recency * (1 - min(age - min(CAST(age AS INTEGER), :halvings), 1.0) / 2)
    / (1 << min(CAST(age AS INTEGER), :halvings)) DESC,
  o.id DESC LIMIT :limit"""
WHOLE = "SELECT o.* FROM observations AS o WHERE o.deleted IS NULL"
COUNTED = "SELECT count(*) FROM observations AS o WHERE o.deleted IS NULL"
LATEST_FIRST = " ORDER BY o.updated DESC, o.id DESC LIMIT :limit OFFSET :offset"
FROM_ID_ON = " AND o.id > :id ORDER BY o.id LIMIT :limit"
BEFORE_ID = " AND o.id < :id ORDER BY o.id DESC LIMIT :limit"
BUT_ID = " AND o.id <> :id"
GROUPED = """
SELECT o.project, o.scope, o.kind, count(*), min(o.updated), max(o.updated)
FROM observations AS o WHERE o.deleted IS NULL"""
BY_GROUP = " GROUP BY o.project, o.scope, o.kind"
DELETED = "SELECT count(*) FROM observations AS o WHERE o.deleted IS NOT NULL"
REVISED = """
SELECT count(*) FROM revisions JOIN observations AS o ON o.id = revisions.observation
WHERE o.deleted IS NULL"""


@contextmanager
def snapshot(connection: sqlite3.Connection) -> Iterator[None]:
    """One state of the database for all that is read in the block."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("COMMIT")


def matching(
    connection: sqlite3.Connection, filters: Filters, words: str, limit: int, clock: Clock
) -> list[tuple[int, Parts]]:
    """The ids of the best that the words and the filters find; without words, of all."""
    where, values = conditions(filters)
    cursor = connection.cursor()
    cursor.row_factory = None
    if words:
        statement = MATCHING_AND_FILTERED + where if where else MATCHING
        found = cursor.execute(statement, {**values, "words": words}).fetchall()
        return best(_by_relevance(cursor, found), limit, clock)
    asked = {**values, **_ranked(clock), "limit": limit}
    return best(cursor.execute(WITHOUT_WORDS + where + BEST_FIRST, asked), limit, clock)


def _by_relevance(cursor: sqlite3.Cursor, found: list[tuple[int, float]]) -> Iterator[Match]:
    """What was found, the most relevant first; what else ranks it is read as it is wanted."""
    found.sort(key=_relevance, reverse=True)
    for start in range(0, len(found), AT_ONCE):
        batch = found[start : start + AT_ONCE]
        wanted = json.dumps([number for number, _ in batch])
        facts = {row[0]: row[1:] for row in cursor.execute(RANKED, (wanted,))}
        for number, relevance in batch:
            yield number, relevance, *facts[number]


def _relevance(found: tuple[int, float]) -> float:
    return found[1]


def _ranked(clock: Clock) -> dict[str, float]:
    return {
        "now": clock.now,
        "half_life": clock.half_life_days * DAY,
        "recency": RECENCY,
        "importance": IMPORTANCE,
        "access": ACCESS,
        "half_accesses": HALF_ACCESSES,
        "halvings": MOST_HALVINGS,
    }


def count_matching(connection: sqlite3.Connection, filters: Filters, words: str) -> int:
    """How many the words and the filters find; the index holds none that are deleted."""
    where, values = conditions(filters)
    if not words:
        return count(connection, filters)
    statement = MATCHED_AND_FILTERED + where if where else MATCHED
    return int(connection.execute(statement, {**values, "words": words}).fetchone()[0])


def with_id(connection: sqlite3.Connection, number: int) -> Observation | None:
    """The observation of that id."""
    return next(iter(with_ids(connection, [number])), None)


def with_ids(connection: sqlite3.Connection, numbers: Sequence[int]) -> list[Observation]:
    """The observations of these ids, in this order."""
    rows = connection.execute(
        "SELECT * FROM observations WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(numbers),),
    ).fetchall()
    found = {row["id"]: observation_of(row) for row in rows}
    return [found[number] for number in numbers if number in found]


def latest(
    connection: sqlite3.Connection, filters: Filters, limit: int, offset: int
) -> list[Observation]:
    """What was changed last, the latest first."""
    where, values = conditions(filters)
    page = {**values, "limit": limit, "offset": offset}
    return list(map(observation_of, connection.execute(WHOLE + where + LATEST_FIRST, page)))


def after(
    connection: sqlite3.Connection, filters: Filters, number: int, limit: int
) -> list[Observation]:
    """What was saved after an id, in the order of ids."""
    where, values = conditions(filters)
    page = {**values, "id": number, "limit": limit}
    return list(map(observation_of, connection.execute(WHOLE + where + FROM_ID_ON, page)))


def before(
    connection: sqlite3.Connection, filters: Filters, number: int, limit: int
) -> list[Observation]:
    """What was saved directly before an id, in the order of ids."""
    where, values = conditions(filters)
    page = {**values, "id": number, "limit": limit}
    rows = connection.execute(WHOLE + where + BEFORE_ID, page).fetchall()
    return [observation_of(row) for row in reversed(rows)]


def count(connection: sqlite3.Connection, filters: Filters) -> int:
    """How many observations the filters let through."""
    where, values = conditions(filters)
    return int(connection.execute(COUNTED + where, values).fetchone()[0])


def around(
    connection: sqlite3.Connection, focus: Observation, within: Filters, most: tuple[int, int]
) -> Timeline:
    """What was saved before and after an observation, at most so many of each."""
    where, values = conditions(within)
    others = connection.execute(COUNTED + where + BUT_ID, {**values, "id": focus.id})
    return Timeline(
        focus,
        before(connection, within, focus.id, most[0]),
        after(connection, within, focus.id, most[1]),
        others.fetchone()[0] + 1,
    )


def revisions(connection: sqlite3.Connection, number: int) -> list[Revision]:
    """What an observation was before, the earliest first."""
    rows = connection.execute(
        "SELECT * FROM revisions WHERE observation = ? ORDER BY revision", (number,)
    )
    return list(map(revision_of, rows))


def related(connection: sqlite3.Connection, number: int) -> list[tuple[int, str]]:
    """The ids and titles of what an observation has to do with, whichever of them says so."""
    rows = connection.execute(
        "SELECT id, title FROM observations WHERE deleted IS NULL AND id IN"
        " (SELECT related FROM relations WHERE observation = :id"
        "  UNION SELECT observation FROM relations WHERE related = :id) ORDER BY id",
        {"id": number},
    )
    return [(row["id"], row["title"]) for row in rows]


def relations(connection: sqlite3.Connection, number: int) -> list[int]:
    """The ids an observation itself names, those of deleted ones too."""
    rows = connection.execute(
        "SELECT related FROM relations WHERE observation = ? ORDER BY related", (number,)
    )
    return [row["related"] for row in rows]


def stats(connection: sqlite3.Connection, filters: Filters) -> Stats:
    """What there is, in sum."""
    where, values = conditions(filters)
    groups = connection.execute(GROUPED + where + BY_GROUP, values).fetchall()
    projects, scopes, kinds = Counter[str](), Counter[str](), Counter[str]()
    for project, scope, kind, number, _, _ in groups:
        projects[project] += number
        scopes[scope] += number
        kinds[kind] += number
    return Stats(
        observations=projects.total(),
        deleted=connection.execute(DELETED + where, values).fetchone()[0],
        revisions=connection.execute(REVISED + where, values).fetchone()[0],
        kinds=_most_first(kinds),
        projects=_most_first(projects),
        scopes=_most_first(scopes),
        oldest=min((group[4] for group in groups), default=None),
        newest=max((group[5] for group in groups), default=None),
    )


def _most_first(counted: Counter[str]) -> dict[str, int]:
    return dict(sorted(counted.items(), key=lambda entry: (-entry[1], entry[0])))
