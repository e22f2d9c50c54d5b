"""Read observations by id, by time, by session, and in total."""

from __future__ import annotations

import sqlite3
from collections import Counter

from efrit_budget.memory.observation import Filters, Observation, Revision, Stats, Timeline
from efrit_budget.memory.rows import COLUMNS, conditions, observation_of, revision_of

COLUMNS_OF_O = ", ".join(f"o.{name}" for name in COLUMNS)
ALL = " FROM observations AS o WHERE o.deleted IS NULL"
WHOLE = f"SELECT {COLUMNS_OF_O}" + ALL
WITH_ID = f"SELECT {COLUMNS_OF_O} FROM observations AS o WHERE o.id = ?"  # noqa: S608  own words
COUNTED = "SELECT count(*)" + ALL
LATEST_FIRST = " ORDER BY o.updated DESC, o.id DESC LIMIT :limit OFFSET :offset"
FROM_ID_ON = " AND o.id > :id ORDER BY o.id LIMIT :limit"
EVERY = f"SELECT {COLUMNS_OF_O} FROM observations AS o WHERE true"  # noqa: S608  own words
LATER = " AND (o.created, o.id) > (:created, :id) ORDER BY o.created, o.id LIMIT :limit"
EARLIER = " AND (o.created, o.id) < (:created, :id) ORDER BY o.created DESC, o.id DESC LIMIT :limit"
BUT_ID = " AND o.id <> :id"
GROUPED = """
SELECT o.project, o.scope, o.kind, count(*), min(o.updated), max(o.updated)
FROM observations AS o WHERE o.deleted IS NULL"""
BY_GROUP = " GROUP BY o.project, o.scope, o.kind"
DELETED = "SELECT count(*) FROM observations AS o WHERE o.deleted IS NOT NULL"
REVISED = """
SELECT count(*) FROM revisions JOIN observations AS o ON o.id = revisions.observation
WHERE o.deleted IS NULL"""


def with_id(connection: sqlite3.Connection, number: int) -> Observation | None:
    """Return the observation with this id, even if it is deleted."""
    row = connection.execute(WITH_ID, (number,)).fetchone()
    return None if row is None else observation_of(row)


def latest(
    connection: sqlite3.Connection, filters: Filters, limit: int, offset: int
) -> list[Observation]:
    """Return the observations changed last, newest first."""
    where, values = conditions(filters)
    page = {**values, "limit": limit, "offset": offset}
    return list(map(observation_of, connection.execute(WHOLE + where + LATEST_FIRST, page)))


def by_id(
    connection: sqlite3.Connection, filters: Filters, last: int, limit: int, *, deleted: bool
) -> list[Observation]:
    """Return observations after an id in id order, with deleted ones if `deleted`."""
    where, values = conditions(filters)
    page = {**values, "id": last, "limit": limit}
    statement = (EVERY if deleted else WHOLE) + where + FROM_ID_ON
    return list(map(observation_of, connection.execute(statement, page)))


def _after(
    connection: sqlite3.Connection, filters: Filters, focus: Observation, limit: int
) -> list[Observation]:
    """Return the observations saved after one, oldest first."""
    where, values = conditions(filters)
    page = {**values, "created": focus.created, "id": focus.id, "limit": limit}
    return list(map(observation_of, connection.execute(WHOLE + where + LATER, page)))


def _before(
    connection: sqlite3.Connection, filters: Filters, focus: Observation, limit: int
) -> list[Observation]:
    """Return the observations saved directly before one, oldest first."""
    where, values = conditions(filters)
    page = {**values, "created": focus.created, "id": focus.id, "limit": limit}
    rows = connection.execute(WHOLE + where + EARLIER, page).fetchall()
    return [observation_of(row) for row in reversed(rows)]


def count(connection: sqlite3.Connection, filters: Filters) -> int:
    """Return how many observations match the filters."""
    where, values = conditions(filters)
    return int(connection.execute(COUNTED + where, values).fetchone()[0])


def around(
    connection: sqlite3.Connection, focus: Observation, within: Filters, most: tuple[int, int]
) -> Timeline:
    """Return the observations saved before and after one, up to a number of each."""
    where, values = conditions(within)
    others = connection.execute(COUNTED + where + BUT_ID, {**values, "id": focus.id})
    return Timeline(
        focus,
        _before(connection, within, focus, most[0]),
        _after(connection, within, focus, most[1]),
        others.fetchone()[0] + 1,
    )


def revisions(connection: sqlite3.Connection, number: int) -> list[Revision]:
    """Return the earlier versions of an observation, oldest first."""
    rows = connection.execute(
        "SELECT * FROM revisions WHERE observation = ? ORDER BY revision", (number,)
    )
    return list(map(revision_of, rows))


def related(connection: sqlite3.Connection, number: int) -> list[tuple[int, str]]:
    """Return ids and titles of related observations, in either direction."""
    rows = connection.execute(
        "SELECT id, title FROM observations WHERE deleted IS NULL AND id IN"
        " (SELECT related FROM relations WHERE observation = :id"
        "  UNION SELECT observation FROM relations WHERE related = :id) ORDER BY id",
        {"id": number},
    )
    return [(row["id"], row["title"]) for row in rows]


def relations(connection: sqlite3.Connection, number: int) -> list[int]:
    """Return the ids that an observation names, deleted ones included."""
    rows = connection.execute(
        "SELECT related FROM relations WHERE observation = ? ORDER BY related", (number,)
    )
    return [row["related"] for row in rows]


def stats(connection: sqlite3.Connection, filters: Filters) -> Stats:
    """Return the totals."""
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
