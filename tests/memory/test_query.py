"""Queries: words in any form, beginnings as they are spelled, phrases and separate words."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from efrit_budget.memory.observation import Draft, Filters
from efrit_budget.memory.query import parse_query
from efrit_budget.memory.store import MemoryStore
from efrit_budget.storage.database import Database
from efrit_budget.storage.migrate import migrations
from tests.databases import empty_memory

STEMMED = (
    *("authentication", "rotation", "configuration", "happiness", "generalization"),
    *("relational", "running", "budgeting", "retries", "caresses", "formative", "triplicate"),
)
LETTERS = st.characters(categories=("L", "Nd"), max_codepoint=0x24F) | st.sampled_from(
    "жЯщéêñöøßİςΩ日本語한글ひらअक٣"
)
WORDS = st.one_of(st.sampled_from(STEMMED), st.text(LETTERS, min_size=1, max_size=12))


def found(store: MemoryStore, query: str, filters: Filters | None = None) -> list[int]:
    """Return the ids of a query's matches, the best first."""
    return [one.observation.id for one in store.search(query, filters or Filters()).candidates]


@pytest.mark.parametrize("word", STEMMED)
def test_every_beginning_of_a_word_finds_it(store: MemoryStore, word: str) -> None:
    number = store.save(Draft("A note", f"It is about {word}, not more.")).id
    for length in range(1, len(word) + 1):
        assert found(store, f"{word[:length]}*") == [number], word[:length]
        assert found(store, f"{word[:length].upper()}* note") == [number], word[:length]


@given(st.lists(WORDS, min_size=1, max_size=5), st.data())
def test_whatever_words_are_saved_every_beginning_of_each_finds_them(
    words: list[str], data: st.DataObject
) -> None:
    with empty_memory() as store:
        number = store.save(Draft("Needle", " ".join(words), tags=(words[0],))).id
        store.save(Draft("Other", "Hay."))
        word = data.draw(st.sampled_from(words))
        other = data.draw(st.sampled_from(words))
        begun = word[: data.draw(st.integers(1, len(word)))]
        for query in (f"{begun}*", f"needle {begun}*", f"{begun}* {other} needle", f"nee* {other}"):
            result = store.search(query, Filters())
            assert number in [one.observation.id for one in result.candidates], query
            assert not result.any_word, query
            assert result.total == len(result.candidates)


@pytest.fixture
def three(store: MemoryStore) -> MemoryStore:
    """A memory with three observations."""
    store.save(Draft("Authentication", "Tokens rotate.", project="lab"))
    store.save(Draft("Sessions", "Authentic users keep rotating tokens.", project="lab"))
    store.save(Draft("Caches", "They are configured by rotation.", project="office"))
    return store


@pytest.mark.parametrize(
    ("query", "ids", "any_word"),
    [
        ("rotation", {1, 2, 3}, False),
        ("rotati*", {2, 3}, False),
        ("authenti*", {1, 2}, False),
        ("authenti* rotated", {1, 2}, False),
        ("rotated authenti*", {1, 2}, False),
        ("authenti* config*", {1, 2, 3}, True),
        ("configuring authenti*", {1, 2, 3}, True),
        ("zebra authenti*", {1, 2}, True),
        ("authenti* zebra", {1, 2}, True),
        ("zebra* rotation", {1, 2, 3}, True),
        ("zebra* yak", set(), False),
        ("authent* rotat* token", {1, 2}, False),
        ("authentication*", {1}, False),
    ],
)
def test_words_and_beginnings_go_together(
    three: MemoryStore, query: str, ids: set[int], any_word: bool
) -> None:
    result = three.search(query)
    assert {one.observation.id for one in result.candidates} == ids
    assert (result.total, result.any_word) == (len(ids), any_word)


@pytest.mark.parametrize("query", ["rotat*", "tok* rotation", "zebra rotat*", "rotation zebra*"])
def test_the_total_is_true_before_any_limit_and_under_filters(
    three: MemoryStore, query: str
) -> None:
    assert three.search(query, limit=1).total == three.search(query).total
    lab = Filters(project="lab")
    assert three.search(query, lab, limit=1).total == len(found(three, query, lab)) == 2


def test_a_beginning_in_the_title_is_worth_more(store: MemoryStore) -> None:
    body = store.save(Draft("A plain note", "About authentication and much more.")).id
    title = store.save(Draft("Authentication notes", "About this and that and much more.")).id
    assert found(store, "authenti*") == found(store, "authenti* note") == [title, body]


def test_what_was_changed_or_deleted_is_found_by_its_new_words_alone(store: MemoryStore) -> None:
    number = store.save(Draft("Port", "authentication", topic_key="k")).id
    store.save(Draft("Port", "configuration", topic_key="k"))
    assert found(store, "authenti*") == []
    assert found(store, "configura*") == [number]
    store.delete(number)
    assert found(store, "configura*") == []


# Words typed as one


@pytest.mark.parametrize("query", ["flow,token", "rotation:token", "flow-zebra", "zebra/token"])
def test_words_that_are_typed_as_one_are_looked_for_each_alone_where_need_be(
    store: MemoryStore, query: str
) -> None:
    number = store.save(Draft("The flow", "It rotates a token.")).id
    assert found(store, query) == [number]
    assert store.search(query).any_word == ("zebra" in query)


def test_side_by_side_comes_first(store: MemoryStore) -> None:
    beside = store.save(Draft("One", "It is foo-baz.")).id
    store.save(Draft("Two", "A foo, then a baz."))
    assert found(store, "foo-baz") == found(store, "foo-ba*") == [beside]


@given(st.text(max_size=40))
def test_whatever_is_typed_is_never_an_error(text: str) -> None:
    for match in parse_query(text).attempts():
        assert match.words or match.beginnings or match.parts


# A database from before


def test_what_was_saved_before_there_were_beginnings_is_found_by_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "memory.db"
    earlier = [each for each in migrations() if each[0] < 6]
    with monkeypatch.context() as patched:
        patched.setattr("efrit_budget.storage.migrate.migrations", lambda: earlier)
        old = Database(path, 5000)
        number, gone = (
            MemoryStore(old).save(Draft(f"{name}", f"{name} authentication")).id
            for name in ("Kept", "Gone")
        )
        MemoryStore(old).delete(gone)
        old.close()
    database = Database(path, 5000)
    assert found(MemoryStore(database), "authenti*") == [number]
    MemoryStore(database).delete(number)
    assert found(MemoryStore(database), "authenti*") == []
    database.close()
