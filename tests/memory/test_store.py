"""What is saved is found again, once, in its latest form, and never with what is private."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

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
    assert store.count() == 1


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


# What is private


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("a <private>word</private> b", "a [private] b"),
        ("<PRIVATE>word</Private>", "[private]"),
        ("a <private>word\nword</private>b<private>word</private>", "a [private]b[private]"),
        ("a <private>x<private>word</private>word</private> b", "a [private] b"),
        ("a <private>never closed word", "a [private]"),
        ('a < private reason="word" >word</ private > b', "a [private] b"),
        ("closed only </private> stays", "closed only </private> stays"),
    ],
)
def test_what_is_private_never_reaches_the_disk(
    store: MemoryStore, database: Database, tmp_path: Path, written: str, kept: str
) -> None:
    secret = "hunter2x"
    text = written.replace("word", secret)
    number = store.save(
        Draft(f"T {text}", text, tags=(f"t {text}",), topic_key=f"k {text}", project=text)
    ).id
    observation = store.get(number)
    assert observation is not None
    assert observation.content == kept.replace("word", secret)
    files = [file.read_bytes() for file in tmp_path.glob("memory.db*")]
    assert len(files) == 3, "the file, its journal and the journal's index"
    assert not any(secret.encode() in data for data in files)


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


# Import


def test_what_is_restored_is_what_was_exported(store: MemoryStore, tmp_path: Path) -> None:
    number = store.save(replace(BACKOFF, topic_key="retry", tags=("a b", "ü"))).id
    store.save(replace(BACKOFF, topic_key="retry", content="New."))
    store.note_access(number)
    [observation] = store.every()
    other_database = Database(tmp_path / "other.db", 5000)
    other = MemoryStore(other_database)
    assert other.restore(observation, store.revisions(number)) == number
    assert list(other.every()) == [observation]
    assert other.revisions(number) == store.revisions(number)
    assert other.search("new").total == 1
    other_database.close()


def test_an_id_that_is_taken_gives_another(store: MemoryStore) -> None:
    store.save(BACKOFF)
    [observation] = store.every()
    assert store.restore(replace(observation, title="Another")) == 2
    assert store.count() == 2


def test_what_is_restored_twice_is_there_once(store: MemoryStore) -> None:
    store.save(BACKOFF)
    [observation] = store.every()
    assert store.restore(observation) == observation.id
    assert list(store.every()) == [observation]


def test_a_topic_key_that_is_taken_is_named(store: MemoryStore) -> None:
    store.save(replace(BACKOFF, topic_key="retry"))
    [observation] = store.every()
    with pytest.raises(ObservationError, match=r"'retry' of project 'lab' is that of #1"):
        store.restore(replace(observation, title="Another"))


# Filters


def test_every_filter_leaves_out_what_it_does_not_name(store: MemoryStore) -> None:
    wanted = Draft(
        "Word", "Same.", project="lab", scope="team", kind="fix", tags=("a", "b"), session="s"
    )
    number = store.save(wanted).id
    for other in (
        replace(wanted, project="office"),
        replace(wanted, scope="project"),
        replace(wanted, kind="note"),
        replace(wanted, tags=("a",)),
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
