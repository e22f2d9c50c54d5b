"""An export is imported without loss, and a later export over an earlier one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from efrit_budget.memory.observation import EVERYTHING, Draft, Filters
from efrit_budget.memory.restoring import Merged
from efrit_budget.memory.store import MemoryStore
from efrit_budget.memory.transfer import Export, RecordError, imported, records
from tests.databases import empty_memory

BACKOFF = Draft("Retries use backoff", "Wait twice as long each time.", project="lab")
TOPIC = replace(BACKOFF, topic_key="retry")


@pytest.fixture
def other() -> Iterator[MemoryStore]:
    """Another empty memory."""
    with empty_memory() as store:
        yield store


def lines(store: MemoryStore, filters: Filters = EVERYTHING) -> list[str]:
    """Export a memory and return the lines."""
    return list(Export(store, filters).lines())


def carry(source: MemoryStore, target: MemoryStore, filters: Filters = EVERYTHING) -> Merged:
    """Export from one and import into the other."""
    return take(target, lines(source, filters))


def take(target: MemoryStore, given: list[str]) -> Merged:
    """Import these lines."""
    return imported(target, records(line.encode() for line in given))


def changed(line: str, **members: Any) -> str:
    """Return a line with other members."""
    return json.dumps({**json.loads(line), **members})


# Without loss


def test_what_comes_in_is_what_went_out(store: MemoryStore, other: MemoryStore) -> None:
    number = store.save(replace(TOPIC, tags=("a b", "ü"))).id
    store.save(replace(TOPIC, content="New."))
    store.note_access(number)
    assert carry(store, other) == Merged(1, 0, 0, 0)
    assert list(other.every()) == list(store.every())
    assert other.revisions(number) == store.revisions(number)
    assert other.search("new").total == 1


ACTS = st.lists(
    st.tuples(
        st.sampled_from(["save", "save", "save", "delete", "read"]),
        st.sampled_from(["one", "two", "größe\n", "a <b> </private>"]),
        st.sampled_from([None, None, "k", "l"]),
        st.lists(st.integers(1, 6), max_size=2),
        st.integers(0, 3),
    ),
    max_size=14,
)


def acted(store: MemoryStore, acts: list[tuple[str, str, str | None, list[int], int]]) -> None:
    """Carry out these changes of a memory, in order."""
    for at, (act, said, topic, others, minutes) in enumerate(acts):
        now = 1e9 + 600 * at * minutes
        if act == "save":
            related = tuple(number for number in others if store.get(number))
            store.save(Draft(said, f"{said} {at % 3}", topic_key=topic, related=related), now=now)
        elif act == "delete":
            store.delete(others[0] if others else 1, now=now)
        else:
            store.note_access(others[0] if others else 1, now=now)


@given(ACTS)
def test_what_goes_through_an_empty_memory_goes_out_as_the_same_lines(acts: list[Any]) -> None:
    with empty_memory() as first, empty_memory() as second:
        acted(first, acts)
        before = lines(first)
        taken = carry(first, second)
        assert lines(second) == before
        assert (taken.new, taken.leading_out) == (len(before), 0)
        again = carry(first, second)
        assert (again.new, again.updated, again.there) == (0, 0, len(before))
        assert lines(second) == before


@given(ACTS, ACTS)
def test_a_later_export_brings_an_earlier_one_up_to_it(
    earlier: list[Any], later: list[Any]
) -> None:
    with empty_memory() as first, empty_memory() as second:
        acted(first, earlier)
        carry(first, second)
        acted(first, later)
        carry(first, second)
        here = {number: store_row(first, number) for number in numbers(first)}
        there = {number: store_row(second, number) for number in numbers(second)}
        assert here == there


def numbers(store: MemoryStore) -> list[int]:
    """Return the ids of all observations, deleted ones too."""
    return [one.id for one in store.every(deleted=True)]


def store_row(store: MemoryStore, number: int) -> Any:
    """Return an observation with its revisions and relations."""
    one = store.get(number)
    assert one is not None
    facts = (one.title, one.content, one.revision, one.created, one.deleted is None)
    return facts, store.revisions(number), store.relations(number)


def test_what_was_deleted_goes_along_unless_something_filters(
    store: MemoryStore, other: MemoryStore
) -> None:
    gone = store.save(BACKOFF).id
    store.save(Draft("Jitter", "Add noise.", project="lab", related=(gone,)))
    store.delete(gone, now=5.0)
    export = Export(store, Filters(project="lab"))
    assert [json.loads(line)["title"] for line in export.lines()] == ["Jitter"]
    assert export.leading_out == 1
    assert carry(store, other) == Merged(2, 0, 0, 0)
    kept = other.get(gone)
    assert kept is not None
    assert kept.deleted == 5.0
    assert other.relations(2) == [gone]
    assert other.search("backoff").total == 0


def test_relations_that_lead_out_of_the_lines_are_counted(other: MemoryStore) -> None:
    with empty_memory() as store:
        first = store.save(BACKOFF).id
        store.save(Draft("Jitter", "Add noise.", related=(first,)))
        assert take(other, lines(store)[1:]).leading_out == 1


def test_an_id_that_is_taken_gives_another(store: MemoryStore, other: MemoryStore) -> None:
    store.save(BACKOFF)
    other.save(Draft("Jitter", "Add noise."))
    assert carry(store, other).new == 1
    assert [one.title for one in other.every()] == ["Jitter", BACKOFF.title]


# What is here already


def test_a_later_revision_takes_the_place_of_the_earlier_and_the_rest_comes_too(
    store: MemoryStore, other: MemoryStore
) -> None:
    first = store.save(TOPIC).id
    carry(store, other)
    store.save(replace(TOPIC, content="Wait three times as long."))
    store.save(replace(TOPIC, content="Wait four times as long.", tags=("net",)))
    store.save(Draft("Jitter", "Add noise."))
    assert carry(store, other) == Merged(new=1, updated=1, there=0, leading_out=0)
    assert lines(other) == lines(store)
    assert [each.revision for each in other.revisions(first)] == [1, 2]
    assert other.search("four").total == 1
    assert other.search("twice").total == 0


def test_an_earlier_export_changes_nothing(store: MemoryStore, other: MemoryStore) -> None:
    store.save(TOPIC)
    old = lines(store)
    store.save(replace(TOPIC, content="Wait three times as long."))
    carry(store, other)
    assert take(other, old) == Merged(new=0, updated=0, there=1, leading_out=0)
    assert lines(other) == lines(store)


def test_what_was_deleted_there_is_deleted_here_and_what_was_here_stays_so(
    store: MemoryStore, other: MemoryStore
) -> None:
    number = store.save(TOPIC).id
    old = lines(store)
    carry(store, other)
    store.delete(number)
    assert carry(store, other).updated == 1
    assert other.search("backoff").total == 0
    assert take(other, old).there == 1
    assert other.search("backoff").total == 0


@pytest.fixture
def conflict(store: MemoryStore, other: MemoryStore) -> list[str]:
    """Lines of which the second has a topic that the other memory has already."""
    store.save(Draft("Jitter", "Add noise."))
    store.save(TOPIC)
    other.save(replace(TOPIC, content="Never wait."))
    return lines(store)


def test_a_topic_of_another_origin_is_told_by_its_line_and_nothing_is_imported(
    other: MemoryStore, conflict: list[str]
) -> None:
    before = lines(other)
    with pytest.raises(RecordError) as caught:
        take(other, ["", *conflict])
    assert "nothing was imported" in caught.value.message
    assert "line 3: topic_key: 'retry' of project 'lab' is that of #1" in caught.value.message
    assert lines(other) == before


def test_without_that_line_the_rest_comes_in(other: MemoryStore, conflict: list[str]) -> None:
    assert take(other, conflict[:1]).new == 1


def test_every_line_that_cannot_be_kept_is_told(other: MemoryStore, conflict: list[str]) -> None:
    blank = changed(conflict[0], id=9, title=" ")
    with pytest.raises(RecordError) as caught:
        take(other, [*conflict, blank])
    assert "line 2: topic_key: " in caught.value.message
    assert "line 3: title: " in caught.value.message


def test_a_topic_that_was_revised_in_both_places_is_told(
    store: MemoryStore, other: MemoryStore
) -> None:
    store.save(TOPIC)
    carry(store, other)
    store.save(replace(TOPIC, content="Here."))
    other.save(replace(TOPIC, content="There."))
    with pytest.raises(RecordError, match=r"line 1: topic_key: .retry. .* in different ways"):
        carry(store, other)


@pytest.mark.parametrize(
    ("members", "told"),
    [
        ({"id": 1}, "line 2: id: #1 is that of line 1"),
        ({"id": 2, "revision": 0}, "line 2: a number is out of range"),
    ],
)
def test_a_line_that_cannot_be_is_named(
    store: MemoryStore, other: MemoryStore, members: dict[str, Any], told: str
) -> None:
    store.save(BACKOFF)
    [line] = lines(store)
    with pytest.raises(RecordError, match=told):
        take(other, [line, changed(line, **members)])


def test_a_revision_that_is_none_of_the_earlier_ones_is_named(
    store: MemoryStore, other: MemoryStore
) -> None:
    store.save(TOPIC)
    store.save(replace(TOPIC, content="New."))
    [line] = lines(store)
    with pytest.raises(RecordError, match="revisions: their numbers must differ and be below 1"):
        take(other, [changed(line, revision=1)])


def test_a_change_by_number_goes_over_to_an_earlier_export_and_back(
    store: MemoryStore, other: MemoryStore
) -> None:
    saved = store.save(Draft("Title", "Before"), now=1_000.0)
    before = lines(store)
    store.change(saved.id, {"content": "After"}, now=2_000.0)
    after = lines(store)
    assert take(other, before).new == 1
    assert take(other, after).updated == 1
    assert lines(other) == after
    assert take(other, before).there == 1
    assert lines(other) == after
