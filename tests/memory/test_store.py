"""Saved observations are found again, once, in their latest form."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from efrit_budget.errors import StorageError
from efrit_budget.memory.observation import Draft, Filters, ObservationError
from efrit_budget.memory.store import MemoryStore
from efrit_budget.storage.database import Database

MINUTE = 60.0
BACKOFF = Draft("Retries use backoff", "Wait twice as long each time.", project="lab")


def test_the_first_save_into_an_empty_memory_gives_number_one(store: MemoryStore) -> None:
    saved = store.save(BACKOFF)
    assert (saved.id, saved.revision, saved.outcome) == (1, 1, "created")
    kept = store.get(1)
    assert kept is not None
    assert (kept.title, kept.content) == (BACKOFF.title, BACKOFF.content)


def test_an_empty_memory_answers_everything(store: MemoryStore) -> None:
    assert store.search("anything").candidates == []
    assert store.search("").total == store.count() == 0
    assert (store.recent(), list(store.every())) == ([], [])
    assert (store.get(1), store.timeline(1), store.delete(1)) == (None, None, False)
    assert store.stats().observations == 0


def test_a_content_of_a_hundred_thousand_characters_comes_back_whole(store: MemoryStore) -> None:
    content = ("é" * 99 + " ") * 1000
    number = store.save(replace(BACKOFF, content=content)).id
    kept = store.get(number)
    assert kept is not None
    assert kept.content == content


def test_a_longer_content_is_refused_with_its_length(store: MemoryStore) -> None:
    with pytest.raises(ObservationError, match=r"content: 100,001 characters; at most 100,000"):
        store.save(replace(BACKOFF, content="x" * 100_001))
    assert store.count() == 0


@pytest.mark.parametrize(
    ("title", "content", "named"), [("", "x", "title"), ("x", " \n", "content")]
)
def test_nothing_is_saved_without_a_title_or_a_content(
    store: MemoryStore, title: str, content: str, named: str
) -> None:
    with pytest.raises(ObservationError, match=f"^{named}: "):
        store.save(Draft(title, content))


# Topics and duplicates


def test_the_same_topic_key_takes_the_place_of_what_was_there(store: MemoryStore) -> None:
    first = store.save(replace(BACKOFF, topic_key="retry"))
    second = store.save(replace(BACKOFF, topic_key="retry", content="Wait three times as long."))
    assert (second.id, second.revision, second.outcome) == (first.id, 2, "updated")
    assert store.search("three").total == 1
    assert store.search("twice").total == 0
    [earlier] = store.revisions(first.id)
    assert (earlier.revision, earlier.content) == (1, BACKOFF.content)


def test_a_topic_key_is_that_of_its_project_and_scope(store: MemoryStore) -> None:
    store.save(replace(BACKOFF, topic_key="retry"))
    other = store.save(replace(BACKOFF, topic_key="retry", project="office"))
    mine = store.save(replace(BACKOFF, topic_key="retry", scope="personal"))
    assert [other.outcome, mine.outcome] == ["created", "created"]
    assert store.count() == 3


def test_the_same_within_fifteen_minutes_counts_as_a_duplicate(store: MemoryStore) -> None:
    first = store.save(BACKOFF, now=0.0)
    second = store.save(BACKOFF, now=15 * MINUTE)
    assert (second.id, second.outcome, second.duplicates) == (first.id, "duplicate", 1)
    assert second.left_out == ()
    assert store.count() == 1


@pytest.mark.parametrize(
    ("other", "left_out"),
    [
        ({"title": "Another title"}, ("title",)),
        ({"kind": "fix", "tags": ("net",)}, ("kind", "tags")),
        ({"importance": 0.9, "session": "s2"}, ("importance",)),
        ({"content": "\n Wait  twice as long\teach time. "}, ()),
    ],
)
def test_the_same_content_is_a_duplicate_whatever_it_is_called_and_says_what_was_not_kept(
    store: MemoryStore, other: dict[str, Any], left_out: tuple[str, ...]
) -> None:
    first = store.save(BACKOFF)
    again = store.save(replace(BACKOFF, **other))
    assert (again.id, again.outcome, again.left_out) == (first.id, "duplicate", left_out)
    kept = store.get(first.id)
    assert kept is not None
    assert (kept.duplicates, kept.title, kept.tags) == (1, BACKOFF.title, ())


@pytest.mark.parametrize("other", [{"project": "office"}, {"scope": "team"}, {"content": "No."}])
def test_another_content_or_place_is_no_duplicate(
    store: MemoryStore, other: dict[str, Any]
) -> None:
    store.save(BACKOFF)
    assert store.save(replace(BACKOFF, **other)).outcome == "created"


def test_what_has_another_topic_key_is_no_duplicate(store: MemoryStore) -> None:
    store.save(BACKOFF)
    first = store.save(replace(BACKOFF, topic_key="retry"))
    other = store.save(replace(BACKOFF, topic_key="network"))
    again = store.save(replace(BACKOFF, topic_key="retry"))
    assert (first.outcome, other.outcome, again.outcome) == ("created", "created", "duplicate")
    assert again.id == first.id


def test_under_a_topic_key_another_title_makes_a_revision(store: MemoryStore) -> None:
    first = store.save(replace(BACKOFF, topic_key="retry"))
    second = store.save(replace(BACKOFF, topic_key="retry", title="Another title"))
    assert (second.id, second.outcome, second.revision) == (first.id, "updated", 2)


def test_the_same_later_is_saved_anew(store: MemoryStore) -> None:
    store.save(BACKOFF, now=0.0)
    assert store.save(BACKOFF, now=15 * MINUTE + 1).outcome == "created"
    assert store.count() == 2


def test_a_deleted_topic_key_is_free_again(store: MemoryStore) -> None:
    first = store.save(replace(BACKOFF, topic_key="retry"), now=0.0)
    store.delete(first.id, now=1.0)
    again = store.save(replace(BACKOFF, topic_key="retry"), now=2.0)
    assert (again.outcome, again.revision) == ("created", 1)
    assert again.id != first.id


# Time


def test_the_timeline_is_in_the_order_of_time_whatever_was_imported_when(
    store: MemoryStore,
) -> None:
    store.save(replace(BACKOFF, title="Of 2026", content="26"), now=1.77e9)
    for year, moment in ((2023, 1.68e9), (2024, 1.71e9), (2022, 1.65e9)):
        store.save(replace(BACKOFF, title=f"Of {year}", content=str(year)), now=moment)
    line = store.timeline(2, 5, 5)
    assert line is not None
    assert [each.title for each in line.before] == ["Of 2022"]
    assert [each.title for each in line.after] == ["Of 2024", "Of 2026"]
    assert line.total == 4
    near = store.timeline(1, 1, 1)
    assert near is not None
    assert [each.title for each in near.before] == ["Of 2024"]


def test_of_one_moment_the_timeline_is_in_the_order_of_numbers(store: MemoryStore) -> None:
    for number in range(5):
        store.save(replace(BACKOFF, content=str(number)), now=1.7e9)
    line = store.timeline(3, 1, 1)
    assert line is not None
    assert [each.id for each in (*line.before, *line.after)] == [2, 4]


# Reading where nothing can be written


def test_what_is_read_is_given_even_if_the_reading_cannot_be_counted(
    store: MemoryStore, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = store.save(BACKOFF).id

    def full(*_: object) -> Any:
        raise StorageError("database or disk is full")

    monkeypatch.setattr(database, "writing", full)
    store.note_access(number)
    assert store.get(number) is not None
    with pytest.raises(StorageError):
        store.delete(number)


def test_a_reading_that_cannot_be_counted_for_another_reason_is_told(
    store: MemoryStore, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> Any:
        raise RuntimeError("a mistake")

    monkeypatch.setattr(database, "writing", broken)
    with pytest.raises(RuntimeError):
        store.note_access(1)


# Deleting


def test_what_is_deleted_is_found_no_more_and_its_row_stays(store: MemoryStore) -> None:
    number = store.save(BACKOFF).id
    assert store.delete(number, now=5.0)
    assert not store.delete(number)
    assert store.search("backoff").total == store.count() == 0
    kept = store.get(number)
    assert kept is not None
    assert (kept.deleted, kept.content) == (5.0, BACKOFF.content)
    assert store.stats().deleted == 1


# Relations


def test_related_observations_name_each_other(store: MemoryStore) -> None:
    first = store.save(BACKOFF).id
    second = store.save(Draft("Jitter", "Add some noise.", related=(first,))).id
    assert store.related(second) == [(first, BACKOFF.title)]
    assert store.related(first) == [(second, "Jitter")]
    store.delete(first)
    assert store.related(second) == []
    assert store.relations(second) == [first]


def test_a_related_observation_that_never_was_is_named_and_nothing_saved(
    store: MemoryStore,
) -> None:
    with pytest.raises(ObservationError, match="related: there is no observation #7"):
        store.save(replace(BACKOFF, related=(7,)))
    assert store.count() == 0


# Filters


def test_every_filter_leaves_out_what_it_does_not_name(store: MemoryStore) -> None:
    wanted = Draft(
        "Word", "Same.", project="lab", scope="team", kind="fix", tags=("a", "b"), session="s"
    )
    number = store.save(wanted).id
    for other in (
        replace(wanted, project="office"),
        replace(wanted, scope="project"),
        replace(wanted, kind="note", content="Another."),
        replace(wanted, tags=("a",), content="A third."),
        replace(wanted, session="t", content="Same again."),
    ):
        store.save(other)
    filters = Filters("lab", "team", "fix", ("b", "a"), "s")
    assert [each.observation.id for each in store.search("word", filters).candidates] == [number]
    assert store.search("word", filters).total == store.count(filters) == 1
    assert [each.id for each in store.recent(filters)] == [number]
    assert [each.id for each in store.every(filters)] == [number]
    assert store.stats(filters).observations == 1
    assert store.search("word").total == 6


def test_what_is_erased_is_in_no_file_any_more(store: MemoryStore, tmp_path: Path) -> None:
    for number in range(50):
        store.save(Draft(f"Other {number}", f"Content {number} " * 50))
    secret = store.save(Draft("Key", "The password is quokkazebra77.", topic_key="key"))
    store.save(Draft("Key", "It was quokkazebra77, now gone.", topic_key="key"))

    def holding() -> list[str]:
        files = [file for file in tmp_path.rglob("*") if file.is_file()]
        return [file.name for file in files if b"quokkazebra77" in file.read_bytes()]

    assert holding()
    assert store.erase(secret.id)
    assert holding() == []
    assert store.get(secret.id) is None
    assert store.search("password").total == 0
    assert not store.erase(secret.id)


def test_a_change_by_number_keeps_the_revision_before(store: MemoryStore) -> None:
    saved = store.save(Draft("Title", "Before", project="p", tags=("a",)))
    changed = store.change(saved.id, {"content": "After"})
    assert (changed.revision, changed.outcome) == (2, "updated")
    one = store.get(saved.id)
    assert one is not None
    assert (one.content, one.tags, one.title) == ("After", ("a",), "Title")
    assert [each.content for each in store.revisions(saved.id)] == ["Before"]
