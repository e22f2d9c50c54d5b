"""Import exported observations: new, newer, or already present."""

from __future__ import annotations

import sqlite3
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from efrit_budget.errors import EfritError, Json
from efrit_budget.memory import finding
from efrit_budget.memory.observation import Draft, Observation, ObservationError, Record, Revision
from efrit_budget.memory.rows import COLUMNS, draft_of, observation_of, tags_column
from efrit_budget.memory.rows import digest as digest_of
from efrit_budget.memory.saving import clean, keep_as_revision, relate, sound, with_topic

ADD = """
INSERT INTO observations (id, kind, project, scope, updated, importance, accesses, accessed,
  deleted, created, revision, duplicates, session, tool, topic_key, digest, tags, title, content)
VALUES (:id, :kind, :project, :scope, :updated, :importance, :accesses, :accessed,
  :deleted, :created, :revision, :duplicates, :session, :tool, :topic_key, :digest, :tags, :title,
  :content)
"""
RENEW = """
UPDATE observations SET kind = :kind, updated = :updated, importance = :importance,
  accesses = max(accesses, :accesses),
  accessed = nullif(max(coalesce(accessed, 0), coalesce(:accessed, 0)), 0),
  deleted = :deleted, revision = :revision, duplicates = max(duplicates, :duplicates),
  session = :session, tool = :tool, digest = :digest, tags = :tags, title = :title,
  content = :content
WHERE id = :here
"""
SAME_ORIGIN = f"""
SELECT {finding.COLUMNS_OF_O} FROM observations AS o
WHERE created = :created AND project = :project AND scope = :scope AND topic_key IS :topic_key
  AND (topic_key IS NOT NULL OR (title = :title AND content = :content))
ORDER BY id = :id DESC, id
"""  # noqa: S608  own words
KEEP_REVISION = """
INSERT OR IGNORE INTO revisions (observation, revision, kind, importance, updated, session, tool,
  tags, title, content)
VALUES (:observation, :revision, :kind, :importance, :updated, :session, :tool, :tags, :title,
  :content)
"""


class Fate(StrEnum):
    """The outcome for one record."""

    NEW = "new"
    UPDATED = "updated"
    THERE = "there"


@dataclass(frozen=True)
class Merged:
    """The outcome of an import."""

    new: int
    updated: int
    there: int
    """Here already, as they are or later."""
    leading_out: int
    """Relations whose other end did not come along."""


class MergeError(EfritError):
    """Records that cannot be imported, with place and reason; nothing is imported."""

    def __init__(self, problems: list[tuple[int, str]]) -> None:
        super().__init__("; ".join(problem for _, problem in problems))
        self.problems = problems


def merged(connection: sqlite3.Connection, records: Sequence[Record]) -> Merged:
    """Keep the records; relations follow their ends to the ids these have here."""
    numbers: dict[int, int] = {}
    fates: list[Fate] = []
    problems: list[tuple[int, str]] = []
    used_ids: set[int] = set()
    for place, record in enumerate(records):
        try:
            number, fate = restored(connection, record, used_ids)
        except ObservationError as error:
            problems.append((place, error.message))
            continue
        numbers[record.id] = number
        used_ids.add(number)
        fates.append(fate)
    if problems:
        raise MergeError(problems)
    leading_out = sum(_relate(connection, record, numbers) for record in records)
    new, updated, there = (fates.count(fate) for fate in Fate)
    return Merged(new, updated, there, leading_out)


def _relate(connection: sqlite3.Connection, record: Record, numbers: Mapping[int, int]) -> int:
    """Relate a record to what came along; gives how many of its relations lead elsewhere."""
    ends = [numbers[other] for other in record.related if other in numbers]
    relate(connection, numbers[record.id], ends)
    return len(record.related) - len(ends)


def restored(
    connection: sqlite3.Connection, record: Record, but: Container[int] = ()
) -> tuple[int, Fate]:
    """Keep a record with all its facts; gives its id here, another one where its own is taken.

    One of the same moment and topic, or with the same words, is the same observation: the higher
    revision of both stands, with the revisions of both before it. Those in `but` are others.
    """
    draft, record = _without_private(record)
    values = {**vars(draft), **_values(record), "digest": digest_of(draft)}
    rows = connection.execute(SAME_ORIGIN, values)
    mine = next((each for each in map(observation_of, rows) if each.id not in but), None)
    if mine is not None:
        return mine.id, _merge_revisions(connection, mine, record, values)
    _require_free_topic(connection, draft, record)
    if connection.execute("SELECT 1 FROM observations WHERE id = :id", values).fetchone():
        values["id"] = None
    number = int(connection.execute(ADD, values).lastrowid or 0)
    _keep_revisions(connection, number, record)
    return number, Fate.NEW


def _without_private(record: Record) -> tuple[Draft, Record]:
    """Return a record without private text."""
    draft = sound(draft_of(record))
    cleaned = {name: value for name, value in vars(draft).items() if name in COLUMNS}
    revisions = tuple(map(_clean_revision, record.revisions))
    return draft, replace(record, **cleaned, revisions=revisions)


def _clean_revision(revision: Revision) -> Revision:
    return replace(
        revision,
        kind=clean(revision.kind),
        session=clean(revision.session),
        tool=clean(revision.tool),
        tags=tuple(map(clean, revision.tags)),
        title=clean(revision.title),
        content=clean(revision.content),
    )


def _values(record: Record) -> dict[str, Json]:
    """Return the column values of a record."""
    values = {name: getattr(record, name) for name in COLUMNS}
    return {**values, "tags": tags_column(record.tags)}


def _merge_revisions(
    connection: sqlite3.Connection, mine: Observation, record: Record, values: dict[str, Json]
) -> Fate:
    """Bring what is here up to the record, if that is later."""
    _require_one_history(connection, mine, record)
    is_later = record.revision > mine.revision
    is_gone = record.revision == mine.revision and record.deleted is not None
    if mine.deleted is not None or not (is_later or is_gone):
        return Fate.THERE
    _keep_revisions(connection, mine.id, record)
    if is_later:
        keep_as_revision(connection, mine.id)
    connection.execute(RENEW, {**values, "here": mine.id})
    return Fate.UPDATED


def _require_one_history(connection: sqlite3.Connection, mine: Observation, record: Record) -> None:
    """Raise where a revision here says something else than that of the same number there."""
    here = _history(mine, finding.revisions(connection, mine.id))
    there = _history(record, record.revisions)
    if any(here[number] != there[number] for number in here.keys() & there.keys()):
        raise ObservationError(
            f"topic_key: {record.topic_key!r} of project {record.project!r} was revised here, as"
            f" #{mine.id}, and there, each in its own way; leave this one out"
        )


def _history(latest: Observation, earlier: Iterable[Revision]) -> dict[int, tuple[str, str]]:
    """Return the content of each revision."""
    contents = {each.revision: (each.title, each.content) for each in earlier}
    return {**contents, latest.revision: (latest.title, latest.content)}


def _require_free_topic(connection: sqlite3.Connection, draft: Draft, record: Record) -> None:
    owner = None if record.deleted is not None else with_topic(connection, draft)
    if owner is not None:
        raise ObservationError(
            f"topic_key: {draft.topic_key!r} of project {draft.project!r} is that of"
            f" #{owner['id']}; delete that one, or leave this one out"
        )


def _keep_revisions(connection: sqlite3.Connection, number: int, record: Record) -> None:
    for revision in record.revisions:
        tags = tags_column(revision.tags)
        connection.execute(KEEP_REVISION, {**vars(revision), "observation": number, "tags": tags})
