"""Export and import memory as JSON lines without loss."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

from pydantic import TypeAdapter, ValidationError

from efrit_budget.errors import InvalidParamsError
from efrit_budget.memory.observation import EVERYTHING, Filters, Record
from efrit_budget.memory.packs import compact
from efrit_budget.memory.restoring import Merged, MergeError
from efrit_budget.memory.store import MemoryStore

LATEST = 253_402_300_799.0
"""The latest time that a record may have, in seconds since 1970: the end of the year 9999."""
MOST = 2**63 - 1
MOST_NAMED = 20


class RecordError(InvalidParamsError):
    """Some lines cannot be imported; the message names them."""


class Export:
    """The observations that match the filters, one line each."""

    def __init__(self, store: MemoryStore, filters: Filters) -> None:
        self._store = store
        self._filters = filters
        self.leading_out = 0
        """The number of relations to observations that are not exported."""

    def lines(self) -> Iterator[str]:
        """Yield one line of JSON for each observation, in the order of ids."""
        with self._store.snapshot():
            going = {observation.id for observation in self._chosen()}
            for observation in self._chosen():
                relations = self._store.relations(observation.id)
                related = [number for number in relations if number in going]
                self.leading_out += len(relations) - len(related)
                revisions = map(asdict, self._store.revisions(observation.id))
                yield compact(
                    {**asdict(observation), "revisions": [*revisions], "related": related}
                )

    def _chosen(self) -> Iterator[Any]:
        return self._store.every(self._filters, deleted=self._filters == EVERYTHING)


def records(lines: Iterable[bytes]) -> dict[int, Record]:
    """Return the record of each line by line number; raise, naming the line, if one is invalid."""
    adapter = TypeAdapter(Record)
    found = {
        number: _record(adapter, line, number)
        for number, line in enumerate(lines, 1)
        if line.strip()
    }
    first: dict[int, int] = {}
    for number, record in found.items():
        if first.setdefault(record.id, number) != number:
            raise RecordError(f"line {number}: id: #{record.id} is that of line {first[record.id]}")
    return found


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
    return record


def _problem(record: Record) -> str:
    """Return the reason why a record is invalid, empty if it is valid."""
    times = (record.created, record.updated, record.accessed or 0.0, record.deleted or 0.0)
    if not all(0 <= moment <= LATEST for moment in times):
        return "a time is not in the years 1970 to 9999"
    if not 0 <= record.importance <= 1:
        return f"importance: {record.importance:g} is not from 0 to 1"
    counts = (record.id - 1, record.revision - 1, record.accesses, record.duplicates)
    earlier = [revision.revision for revision in record.revisions]
    if not all(0 <= number < MOST for number in (*counts, *earlier)):
        return "a number is out of range"
    if len(set(earlier)) < len(earlier) or max(earlier, default=0) >= record.revision:
        return f"revisions: their numbers must differ and be below {record.revision}"
    return ""


def imported(store: MemoryStore, given: dict[int, Record]) -> Merged:
    """Import the records, all or none; raise, naming the lines, if one cannot be imported."""
    try:
        return store.merge(list(given.values()))
    except MergeError as error:
        lines = list(given)
        problems = [f"line {lines[place]}: {problem}" for place, problem in error.problems]
        more = [f"and {len(problems) - MOST_NAMED:,} more"] if len(problems) > MOST_NAMED else []
        raise RecordError(
            "\n".join(["nothing was imported", *problems[:MOST_NAMED], *more])
        ) from error
