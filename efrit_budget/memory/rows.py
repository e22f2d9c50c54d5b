"""Read and write the rows of observations, their revisions and relations; read past sessions."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import fields
from sqlite3 import Connection, Row
from typing import Any

from efrit_budget.errors import Json, JsonObject
from efrit_budget.memory.observation import (
    EVERYTHING,
    Draft,
    Filters,
    Observation,
    PastMessage,
    PastSession,
    RecentSessions,
    Revision,
    Stats,
    Timeline,
)
from efrit_budget.memory.private import without_private

COLUMNS = tuple(field.name for field in fields(Observation))
TAGS = COLUMNS.index("tags")
REVISION_COLUMNS = tuple(field.name for field in fields(Revision))
FILTERS = {
    "project": " AND o.project = :project",
    "scope": " AND o.scope = :scope COLLATE NOCASE",
    "kind": " AND o.kind = :kind",
    "session": " AND o.session = :session",
    "tags": " AND NOT EXISTS (SELECT 1 FROM json_each(:tags) AS wanted"
    " WHERE wanted.value NOT IN (SELECT value FROM json_each(o.tags)))",
}
KEPT_COLUMNS = ("observation", *REVISION_COLUMNS)
COLUMNS_OF_O = ", ".join(f"o.{name}" for name in COLUMNS)
ALL = " FROM observations AS o WHERE o.deleted IS NULL"
WITH_DELETED = " FROM observations AS o WHERE true"
OF_PROJECT = "(:project IS NULL OR project = :project) AND id <> :but"
SESSIONS = f"FROM remembered_sessions WHERE {OF_PROJECT}"
DUPLICATE = """
SELECT id, revision, duplicates, title, kind, tags, importance FROM observations
WHERE digest = :digest AND updated >= :since AND deleted IS NULL
  AND (:topic_key IS NULL OR topic_key = :topic_key)
ORDER BY title = :title DESC, id DESC LIMIT 1
"""
SAME_ORIGIN = f"""
SELECT {COLUMNS_OF_O} FROM observations AS o
WHERE created = :created AND project = :project AND scope = :scope AND topic_key IS :topic_key
  AND (topic_key IS NOT NULL OR (title = :title AND content = :content)
    OR EXISTS (SELECT 1 FROM revisions AS r WHERE r.observation = o.id
      AND r.title = :title AND r.content = :content)
    OR EXISTS (SELECT 1 FROM json_each(:earlier) AS e
      WHERE e.value ->> 0 = o.title AND e.value ->> 1 = o.content))
ORDER BY id = :id DESC, id
"""  # noqa: S608  own words
INSERT_REVISION = (
    f"INSERT OR IGNORE INTO revisions ({', '.join(KEPT_COLUMNS)})"  # noqa: S608  own names
    f" VALUES ({', '.join(f':{name}' for name in KEPT_COLUMNS)})"
)
PROMPTS = f"FROM remembered_prompts WHERE session IN (SELECT id {SESSIONS})"
LATEST_PROMPTS = "ORDER BY asked DESC, session, turn DESC"


# Conversions


def observation_of(row: Sequence[Any]) -> Observation:
    """Return the observation of a row with `COLUMNS`."""
    values = list(row)
    values[TAGS] = tuple(json.loads(row[TAGS]))
    return Observation(*values)


def _revision_of(row: Row) -> Revision:
    values = {name: row[name] for name in REVISION_COLUMNS}
    return Revision(**values | {"tags": tuple(json.loads(row["tags"]))})


def tags_column(tags: Sequence[str]) -> str:
    """Return tags as they are stored: the JSON text of a list."""
    return json.dumps(list(tags), ensure_ascii=False)


def conditions(filters: Filters) -> tuple[str, JsonObject]:
    """Return filters as SQL that continues a WHERE clause, and the parameters of that SQL."""
    values: JsonObject = {
        "project": filters.project,
        "scope": filters.scope,
        "kind": filters.kind,
        "session": filters.session,
        "tags": tags_column(filters.tags) if filters.tags else None,
    }
    parameters = {name: value for name, value in values.items() if value is not None}
    return "".join(FILTERS[name] for name in parameters), parameters


def digest(draft: Draft) -> bytes:
    """Return a hash of content, project and scope; the number and kind of blanks do not matter."""
    parts = (draft.project, draft.scope, " ".join(draft.content.split()))
    import hashlib  # noqa: PLC0415 - reading memory must not wait for it

    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).digest()


def draft_of(observation: Observation) -> Draft:
    """Return the draft that would save this observation."""
    names = [field.name for field in fields(Draft) if field.name in COLUMNS]
    return Draft(**{name: getattr(observation, name) for name in names})


# Reading


def get(connection: Connection, number: int) -> Observation | None:
    """Return the observation with this id, even if it is deleted, or None."""
    statement = f"SELECT {COLUMNS_OF_O}{WITH_DELETED} AND o.id = ?"
    row = connection.execute(statement, (number,)).fetchone()
    return None if row is None else observation_of(row)


def exists(connection: Connection, number: int) -> bool:
    """Return whether an observation with this id exists, even if it is deleted."""
    found = connection.execute("SELECT 1 FROM observations WHERE id = ?", (number,)).fetchone()
    return found is not None


def find_topic(connection: Connection, draft: Draft) -> Row | None:
    """Return id and revision of the observation with the draft's topic key, or None."""
    row: Row | None = connection.execute(
        "SELECT id, revision FROM observations"
        " WHERE project = ? AND scope = ? AND topic_key = ? AND deleted IS NULL",
        (draft.project, draft.scope, draft.topic_key),
    ).fetchone()
    return row


def with_topic(connection: Connection, topic: str, filters: Filters) -> list[Observation]:
    """Return the observations that match the filters and have this topic key."""
    return _select(connection, filters, " AND o.topic_key = :topic", topic=topic)


def find_duplicate(connection: Connection, draft: Draft, since: float) -> Row | None:
    """Return the observation with the draft's content and topic key saved since then, or None."""
    values = {"digest": digest(draft), "since": since}
    values |= {"topic_key": draft.topic_key, "title": draft.title}
    row: Row | None = connection.execute(DUPLICATE, values).fetchone()
    return row


def list_same_origin(connection: Connection, values: JsonObject) -> list[Observation]:
    """Return the observations with this time of creation and topic key or text, `id` first."""
    return [observation_of(row) for row in connection.execute(SAME_ORIGIN, values)]


def _select(
    connection: Connection, filters: Filters, rest: str, source: str = ALL, **values: Json
) -> list[Observation]:
    """Return the observations that match the filters; `rest` ends the statement."""
    where, parameters = conditions(filters)
    statement = f"SELECT {COLUMNS_OF_O}{source}{where}{rest}"
    return [observation_of(row) for row in connection.execute(statement, parameters | values)]


def latest(
    connection: Connection, filters: Filters = EVERYTHING, limit: int = 20, offset: int = 0
) -> list[Observation]:
    """Return `limit` observations from `offset` on, those that were changed last first."""
    order = " ORDER BY o.updated DESC, o.id DESC LIMIT :limit OFFSET :offset"
    return _select(connection, filters, order, limit=limit, offset=offset)


def after_id(
    connection: Connection, filters: Filters, number: int, limit: int, *, deleted: bool
) -> list[Observation]:
    """Return `limit` observations after an id, in the order of ids, also deleted if `deleted`."""
    rest = " AND o.id > :id ORDER BY o.id LIMIT :limit"
    source = WITH_DELETED if deleted else ALL
    return _select(connection, filters, rest, source, id=number, limit=limit)


def timeline(
    connection: Connection, focus: Observation, filters: Filters, most: tuple[int, int]
) -> Timeline:
    """Return an observation with at most `most` saved before it, and `most` after it."""
    moment: JsonObject = {"created": focus.created, "id": focus.id}
    earlier = (
        " AND (o.created, o.id) < (:created, :id) ORDER BY o.created DESC, o.id DESC LIMIT :limit"
    )
    later = " AND (o.created, o.id) > (:created, :id) ORDER BY o.created, o.id LIMIT :limit"
    before = _select(connection, filters, earlier, **moment, limit=most[0])
    after = _select(connection, filters, later, **moment, limit=most[1])
    where, values = conditions(filters)
    others = f"SELECT count(*){ALL}{where} AND o.id <> :id"
    total = connection.execute(others, {**values, "id": focus.id}).fetchone()[0] + 1
    return Timeline(focus, before[::-1], after, total)


def count(connection: Connection, filters: Filters = EVERYTHING) -> int:
    """Return how many observations match the filters."""
    where, values = conditions(filters)
    return int(connection.execute(f"SELECT count(*){ALL}{where}", values).fetchone()[0])


def revisions(connection: Connection, number: int) -> list[Revision]:
    """Return the earlier versions of an observation, oldest first."""
    statement = "SELECT * FROM revisions WHERE observation = ? ORDER BY revision"
    return list(map(_revision_of, connection.execute(statement, (number,))))


def related(connection: Connection, number: int) -> list[tuple[int, str]]:
    """Return ids and titles of related observations, in either direction."""
    rows = connection.execute(
        "SELECT id, title FROM observations WHERE deleted IS NULL AND id IN"
        " (SELECT related FROM relations WHERE observation = :id"
        "  UNION SELECT observation FROM relations WHERE related = :id) ORDER BY id",
        {"id": number},
    )
    return [(row["id"], row["title"]) for row in rows]


def relations(connection: Connection, number: int) -> list[int]:
    """Return the ids that an observation names as related, deleted ones included."""
    statement = "SELECT related FROM relations WHERE observation = ? ORDER BY related"
    return [row["related"] for row in connection.execute(statement, (number,))]


def stats(connection: Connection, filters: Filters = EVERYTHING) -> Stats:
    """Return the totals of the observations that match the filters."""
    where, values = conditions(filters)
    groups = connection.execute(
        "SELECT o.project, o.scope, o.kind, count(*), min(o.updated), max(o.updated)"
        f"{ALL}{where} GROUP BY o.project, o.scope, o.kind",
        values,
    ).fetchall()
    deleted = f"SELECT count(*){WITH_DELETED} AND o.deleted IS NOT NULL{where}"
    revised = (
        "SELECT count(*) FROM revisions JOIN observations AS o"  # noqa: S608  own words
        " ON o.id = revisions.observation"
        f" WHERE o.deleted IS NULL{where}"
    )
    projects, scopes, kinds = Counter[str](), Counter[str](), Counter[str]()
    for project, scope, kind, number, _, _ in groups:
        projects[project] += number
        scopes[scope] += number
        kinds[kind] += number
    return Stats(
        observations=projects.total(),
        deleted=connection.execute(deleted, values).fetchone()[0],
        revisions=connection.execute(revised, values).fetchone()[0],
        kinds=_most_first(kinds),
        projects=_most_first(projects),
        scopes=_most_first(scopes),
        oldest=min((group[4] for group in groups), default=None),
        newest=max((group[5] for group in groups), default=None),
    )


def _most_first(counted: Counter[str]) -> dict[str, int]:
    return dict(sorted(counted.items(), key=lambda entry: (-entry[1], entry[0])))


def recent_sessions(
    connection: Connection, project: str | None, but: str, limit: int
) -> RecentSessions:
    """Return the latest sessions and user messages, of a project or of all, but not of `but`."""
    values: JsonObject = {"project": project, "but": but, "limit": limit}
    sessions = connection.execute(
        f"SELECT id, title, touched {SESSIONS} ORDER BY touched DESC, id LIMIT :limit",
        values,
    )
    # The texts, which are long, are read of the latest messages only.
    prompts = connection.execute(
        "SELECT asked, text FROM remembered_prompts WHERE (session, turn) IN"  # noqa: S608
        f" (SELECT session, turn {PROMPTS} {LATEST_PROMPTS} LIMIT :limit) {LATEST_PROMPTS}",
        values,
    )
    return RecentSessions(
        [PastSession(row[0], without_private(row[1]), row[2]) for row in sessions],
        [PastMessage(row[0], without_private(row[1] or "")) for row in prompts],
        connection.execute(f"SELECT count(*) {SESSIONS}", values).fetchone()[0],
        connection.execute(f"SELECT count(*) {PROMPTS}", values).fetchone()[0],
    )


def search_requests(
    connection: Connection, words: Sequence[str], project: str | None, limit: int
) -> tuple[list[PastMessage], int]:
    """Return the latest user messages with all of the words, in any case, and their number."""
    values = {"project": project, "but": ""}
    statement = f"SELECT asked, text {PROMPTS} {LATEST_PROMPTS}"
    found = [
        PastMessage(row[0], text)
        for row in connection.execute(statement, values)
        if all(word in (text := without_private(row[1] or "")).casefold() for word in words)
    ]
    return found[:limit], len(found)


# Writing


def insert(connection: Connection, **columns: Any) -> int:
    """Insert an observation and return its id."""
    values = ", ".join(f":{name}" for name in columns)
    statement = f"INSERT INTO observations ({', '.join(columns)}) VALUES ({values})"  # noqa: S608
    return int(connection.execute(statement, columns).lastrowid or 0)


def update(connection: Connection, number: int, **columns: Any) -> None:
    """Set columns of an observation."""
    changes = ", ".join(f"{name} = :{name}" for name in columns)
    statement = f"UPDATE observations SET {changes} WHERE id = :id"  # noqa: S608  own names
    connection.execute(statement, {**columns, "id": number})


def count_access(connection: Connection, number: int, now: float) -> None:
    """Count a reading of an observation."""
    connection.execute(
        "UPDATE observations SET accesses = accesses + 1, accessed = ? WHERE id = ?", (now, number)
    )


def delete(connection: Connection, number: int, now: float) -> bool:
    """Mark an observation as deleted; return false if none has this id or it is deleted already."""
    changed = connection.execute(
        "UPDATE observations SET deleted = ? WHERE id = ? AND deleted IS NULL", (now, number)
    )
    return changed.rowcount > 0


def erase(connection: Connection, number: int) -> bool:
    """Delete an observation with its revisions and relations, and what the indexes hold of it.

    SQLite overwrites what it frees meanwhile.
    """
    connection.execute("PRAGMA secure_delete = ON")
    try:
        # Marked as deleted, it leaves the indexes, in which its words stay until they are merged.
        connection.execute(
            "UPDATE observations SET deleted = coalesce(deleted, 0) WHERE id = ?", (number,)
        )
        found = connection.execute("DELETE FROM observations WHERE id = ?", (number,)).rowcount > 0
        if found:
            connection.execute(
                "INSERT INTO observations_words (observations_words) VALUES ('optimize')"
            )
            connection.execute(
                "INSERT INTO observations_spelled (observations_spelled) VALUES ('optimize')"
            )
    finally:
        connection.execute("PRAGMA secure_delete = OFF")
    return found


def keep_as_revision(connection: Connection, number: int) -> None:
    """Copy an observation to its earlier revisions."""
    columns = ", ".join(REVISION_COLUMNS)
    connection.execute(
        f"INSERT OR IGNORE INTO revisions (observation, {columns})"  # noqa: S608  own names
        f" SELECT id, {columns} FROM observations WHERE id = ?",
        (number,),
    )


def insert_revisions(connection: Connection, number: int, earlier: Sequence[Revision]) -> None:
    """Insert earlier revisions of an observation, but for those that it has."""
    for each in earlier:
        tags = tags_column(each.tags)
        connection.execute(INSERT_REVISION, {**vars(each), "observation": number, "tags": tags})


def insert_relation(connection: Connection, number: int, other: int) -> None:
    """Relate an observation to another, unless they are related."""
    connection.execute(
        "INSERT OR IGNORE INTO relations (observation, related) VALUES (?, ?)", (number, other)
    )
