"""Reading observations: by id, by words, by time, in their session, in sum."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
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
    Parts,
    parts_of,
)
from efrit_budget.memory.rows import COLUMNS, conditions, observation_of, revision_of

COLUMNS_OF_O = ", ".join(f"o.{name}" for name in COLUMNS)
ALL = " FROM observations AS o WHERE o.deleted IS NULL"
MATCHED = """
FROM observations_words AS w CROSS JOIN observations AS o ON o.id = w.rowid
WHERE observations_words MATCH :words"""
FACTS = """
SELECT o.id, {relevance} AS relevance, o.importance, o.accesses,
  max(0.0, (:now - o.updated) / :half_life) AS age"""
FACTS_OF_MATCHED = FACTS.format(relevance="-w.rank") + MATCHED
FACTS_OF_ALL = FACTS.format(relevance=1.0) + ALL
BEST = f"""
SELECT {COLUMNS_OF_O}, best.relevance FROM (
  SELECT id, relevance FROM ({{facts}})
  ORDER BY relevance * (
      1 + :importance * importance + :access * accesses / (accesses + :half_accesses)
      + :recency * (1 - min(age - min(CAST(age AS INTEGER), :halvings), 1.0) / 2)
        / (1 << min(CAST(age AS INTEGER), :halvings))) DESC,
    id DESC LIMIT :limit
) AS best CROSS JOIN observations AS o ON o.id = best.id"""  # noqa: S608  own words
COUNTED_WORDS = "SELECT count(*) FROM observations_words WHERE observations_words MATCH :words"
WHOLE = f"SELECT {COLUMNS_OF_O}" + ALL
WITH_ID = f"SELECT {COLUMNS_OF_O} FROM observations AS o WHERE o.id = ?"  # noqa: S608  own words
COUNTED = "SELECT count(*)" + ALL
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
) -> list[tuple[Observation, Parts]]:
    """The best that the words and the filters find; without words, of all.

    Of equals, the one saved last comes first.
    """
    where, values = conditions(filters)
    facts = (FACTS_OF_MATCHED if words else FACTS_OF_ALL) + where
    asked = {**values, **_ranked(clock), "words": words, "limit": limit}
    found = []
    for *row, relevance in connection.execute(BEST.format(facts=facts), asked):
        observation = observation_of(row)
        found.append((observation, parts_of(observation, relevance, clock)))
    return sorted(found, key=_goodness, reverse=True)


def _goodness(found: tuple[Observation, Parts]) -> tuple[float, int]:
    observation, parts = found
    return parts.score, observation.id


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
    statement = "SELECT count(*)" + MATCHED + where if where else COUNTED_WORDS
    return int(connection.execute(statement, {**values, "words": words}).fetchone()[0])


def with_id(connection: sqlite3.Connection, number: int) -> Observation | None:
    """The observation of that id, a deleted one too."""
    row = connection.execute(WITH_ID, (number,)).fetchone()
    return None if row is None else observation_of(row)


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
