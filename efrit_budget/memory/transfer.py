"""Memory as JSON lines, an observation each, out and in again without loss."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields, replace
from typing import ClassVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from efrit_budget.errors import InvalidParamsError
from efrit_budget.memory.observation import Filters, Observation, ObservationError, Revision
from efrit_budget.memory.private import without_private
from efrit_budget.memory.store import MemoryStore

LATEST = 253_402_300_799.0
"""The end of the year 9999, where calendars end."""
MOST = 2**63 - 1


@dataclass(frozen=True)
class Record(Observation):
    """A line: an observation, what it was before, and what it has to do with."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid", allow_inf_nan=False)

    revisions: tuple[Revision, ...] = ()
    related: tuple[int, ...] = ()


class RecordError(InvalidParamsError):
    """A line that is no observation."""


def exported(store: MemoryStore, filters: Filters) -> Iterator[str]:
    """A line for each observation, in the order of their ids."""
    going = {observation.id for observation in store.every(filters)}
    for observation in store.every(filters):
        related = [number for number in store.relations(observation.id) if number in going]
        revisions = [asdict(revision) for revision in store.revisions(observation.id)]
        record = {**asdict(observation), "revisions": revisions, "related": related}
        yield json.dumps(record, ensure_ascii=False, separators=(",", ":"))


def records(lines: Iterable[bytes]) -> list[Record]:
    """The observations of some lines; the first that is none is named, and none is given then."""
    adapter = TypeAdapter(Record)
    return [_record(adapter, line, number) for number, line in enumerate(lines, 1) if line.strip()]


def _record(adapter: TypeAdapter[Record], line: bytes, number: int) -> Record:
    try:
        record = adapter.validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise RecordError(f"line {number}: {place or 'the whole'}: {first['msg']}") from error
    problem = _problem(record)
    if problem:
        raise RecordError(f"line {number}: {problem}")
    return replace(record, revisions=tuple(map(_without_private, record.revisions)))


def _problem(record: Record) -> str:
    """What is wrong with a record whose members are of the right kinds."""
    times = (record.created, record.updated, record.accessed or 0.0, record.deleted or 0.0)
    if not all(0 <= moment <= LATEST for moment in times):
        return "a time is no second from 1970 to 9999"
    if not 0 <= record.importance <= 1:
        return f"importance: {record.importance:g} is not from 0 to 1"
    counts = (record.id - 1, record.revision, record.accesses, record.duplicates)
    earlier = [revision.revision for revision in record.revisions]
    if not all(0 <= number < MOST for number in (*counts, *earlier)):
        return "a number is out of range"
    return ""


def _without_private(revision: Revision) -> Revision:
    return replace(
        revision,
        title=without_private(revision.title),
        content=without_private(revision.content),
    )


def imported(store: MemoryStore, given: list[Record]) -> int:
    """Keep the records; relations follow their ends to the ids these have here."""
    numbers = {record.id: _restored(store, record) for record in given}
    for record in given:
        if record.related:
            ends = [numbers[other] for other in record.related if other in numbers]
            store.restore(_observation(record), related=ends)
    return len(numbers)


def _restored(store: MemoryStore, record: Record) -> int:
    try:
        return store.restore(_observation(record), record.revisions)
    except ObservationError as error:
        raise RecordError(
            f"#{record.id}: {error.message} (those before it are imported, and a second import"
            " does not double them)"
        ) from error


def _observation(record: Record) -> Observation:
    return Observation(**{field.name: getattr(record, field.name) for field in fields(Observation)})
