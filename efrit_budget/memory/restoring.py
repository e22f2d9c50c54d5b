"""Import exported observations: new, newer, or already present."""

import json
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from sqlite3 import Connection

from efrit_budget.errors import EfritError, JsonObject
from efrit_budget.memory import rows
from efrit_budget.memory.observation import Draft, Observation, ObservationError, Record, Revision
from efrit_budget.memory.rows import COLUMNS, REVISION_COLUMNS
from efrit_budget.memory.saving import clean, clean_draft, relate

REVISED = ("deleted", "digest", *REVISION_COLUMNS)
"""The columns that a later revision replaces."""


class Fate(StrEnum):
    """The outcome of importing one record."""

    NEW = "new"
    UPDATED = "updated"
    THERE = "there"


@dataclass(frozen=True)
class Merged:
    """The outcome of an import."""

    new: int
    updated: int
    there: int
    """The number of records that are here already, in the same revision or a later one."""
    leading_out: int
    """The number of relations to observations that are not among the records."""


class MergeError(EfritError):
    """Records that cannot be imported, with place and reason; nothing is imported."""

    def __init__(self, problems: list[tuple[int, str]]) -> None:
        super().__init__("; ".join(problem for _, problem in problems))
        self.problems = problems


def merge(connection: Connection, records: Sequence[Record]) -> Merged:
    """Import records; point their relations to the ids that the records get in this database."""
    numbers: dict[int, int] = {}
    fates: list[Fate] = []
    problems: list[tuple[int, str]] = []
    used_ids: set[int] = set()
    for place, record in enumerate(records):
        try:
            number, fate = restore(connection, record, used_ids)
        except ObservationError as error:
            problems.append((place, error.message))
            continue
        numbers[record.id] = number
        used_ids.add(number)
        fates.append(fate)
    if problems:
        raise MergeError(problems)
    leading_out = 0
    for record in records:
        targets = [numbers[other] for other in record.related if other in numbers]
        relate(connection, numbers[record.id], targets)
        leading_out += len(record.related) - len(targets)
    new, updated, there = (fates.count(fate) for fate in Fate)
    return Merged(new, updated, there, leading_out)


def restore(connection: Connection, record: Record, but: Container[int] = ()) -> tuple[int, Fate]:
    """Import a record; return its id here, a new one if the record's own is taken, and its fate.

    A record created at the same time as an observation here, with the same topic key or text, is
    the same observation: the higher revision is kept, with the earlier revisions of both. An
    observation whose id is in `but` never counts as the same.
    """
    draft, record = _clean_record(record)
    columns = {name: getattr(record, name) for name in COLUMNS}
    values = vars(draft) | columns
    values |= {"tags": rows.tags_column(record.tags), "digest": rows.digest(draft)}
    values["earlier"] = json.dumps([(one.title, one.content) for one in record.revisions])
    found = rows.list_same_origin(connection, values)
    mine = next((each for each in found if each.id not in but), None)
    if mine is not None:
        return mine.id, _merge_revisions(connection, mine, record, values)
    _require_free_topic(connection, draft, record)
    if rows.exists(connection, record.id):
        values["id"] = None
    number = rows.insert(connection, **{name: values[name] for name in (*COLUMNS, "digest")})
    rows.insert_revisions(connection, number, record.revisions)
    return number, Fate.NEW


def _clean_record(record: Record) -> tuple[Draft, Record]:
    """Return a record without private text and invalid characters, and its draft."""
    draft = clean_draft(rows.draft_of(record))
    cleaned = {name: value for name, value in vars(draft).items() if name in COLUMNS}
    revisions = tuple(map(_clean_revision, record.revisions))
    return draft, replace(record, **cleaned, revisions=revisions)


def _clean_revision(revision: Revision) -> Revision:
    texts: JsonObject = {
        name: clean(getattr(revision, name))
        for name in ("kind", "session", "tool", "title", "content")
    }
    return replace(revision, **texts, tags=tuple(map(clean, revision.tags)))


def _merge_revisions(
    connection: Connection, mine: Observation, record: Record, values: JsonObject
) -> Fate:
    """Update an observation if the record is later, or as late and deleted; return the fate."""
    _require_one_history(connection, mine, record)
    is_later = record.revision > mine.revision
    is_gone = record.revision == mine.revision and record.deleted is not None
    if mine.deleted is not None or not (is_later or is_gone):
        return Fate.THERE
    rows.insert_revisions(connection, mine.id, record.revisions)
    if is_later:
        rows.keep_as_revision(connection, mine.id)
    rows.update(
        connection,
        mine.id,
        **{name: values[name] for name in REVISED},
        accesses=max(mine.accesses, record.accesses),
        accessed=max(filter(None, (mine.accessed, record.accessed)), default=None),
        duplicates=max(mine.duplicates, record.duplicates),
    )
    return Fate.UPDATED


def _require_one_history(connection: Connection, mine: Observation, record: Record) -> None:
    """Raise if a revision here and one of the record have one number and different texts."""
    here = _history(mine, rows.revisions(connection, mine.id))
    there = _history(record, record.revisions)
    if any(here[number] != there[number] for number in here.keys() & there.keys()):
        raise ObservationError(
            f"topic_key: {record.topic_key!r} of project {record.project!r} was revised here, as"
            f" #{mine.id}, and there in different ways; leave this one out"
        )


def _history(latest: Observation, earlier: Iterable[Revision]) -> dict[int, tuple[str, str]]:
    """Return title and content of each revision by its number."""
    contents = {each.revision: (each.title, each.content) for each in earlier}
    return {**contents, latest.revision: (latest.title, latest.content)}


def _require_free_topic(connection: Connection, draft: Draft, record: Record) -> None:
    owner = None if record.deleted is not None else rows.find_topic(connection, draft)
    if owner is not None:
        raise ObservationError(
            f"topic_key: {draft.topic_key!r} of project {draft.project!r} is that of"
            f" #{owner['id']}; delete that one, or leave this one out"
        )
