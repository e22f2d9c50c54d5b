"""The order of matches: relevance first, then age, importance and the number of reads."""

from __future__ import annotations

import random

import pytest

from efrit_budget.memory.observation import Draft
from efrit_budget.memory.searching import DAY, RankClock, rank_of
from efrit_budget.memory.store import MemoryStore

NOW = 1_800_000_000.0


def test_the_best_are_the_same_as_when_all_are_looked_at(store: MemoryStore) -> None:
    chosen = random.Random(8)
    for number in range(400):
        draft = Draft(
            f"Needle {number}",
            f"Needle {number}." + " needle" * chosen.randrange(5) + " hay" * chosen.randrange(60),
            importance=chosen.random(),
        )
        saved = store.save(draft, now=NOW - chosen.random() * 1e7)
        for _ in range(chosen.randrange(4)):
            store.note_access(saved.id, now=NOW)
    for query in ("needle", ""):
        every = store.search(query, limit=400, now=NOW).candidates
        scores = {
            one.observation.id: rank_of(one.observation, one.rank.relevance, RankClock(NOW)).score
            for one in every
        }
        wanted = sorted(scores, key=lambda number: (scores[number], number), reverse=True)[:25]
        found = store.search(query, limit=25, now=NOW)
        assert [one.observation.id for one in found.candidates] == wanted
        assert found.total == len(every) == 400


@pytest.mark.parametrize(("halvings", "left"), [(0, 1), (0.5, 0.75), (1, 0.5), (2, 0.25), (900, 0)])
def test_recency_halves_with_each_half_life(
    store: MemoryStore, halvings: float, left: float
) -> None:
    number = store.save(Draft("Needle", "One."), now=NOW - halvings * 7 * DAY).id
    observation = store.get(number)
    assert observation is not None
    assert rank_of(observation, 1.0, RankClock(NOW, 7)).recency == pytest.approx(left)


def test_a_shorter_half_life_lets_the_newer_come_first(store: MemoryStore) -> None:
    old = store.save(Draft("Needle", "One.", importance=0.6), now=NOW - 40 * DAY).id
    new = store.save(Draft("Needle", "Two.", importance=0.4), now=NOW).id
    for days, wanted in ((10_000, [old, new]), (10, [new, old])):
        found = store.search("needle", half_life_days=days, now=NOW).candidates
        assert [one.observation.id for one in found] == wanted


def test_a_word_in_the_title_counts_more_than_in_tags_or_content(store: MemoryStore) -> None:
    store.save(Draft("Other", "A needle."), now=NOW)
    titled = store.save(Draft("Needle", "A thing."), now=NOW).id
    store.save(Draft("Other", "A thing.", tags=("needle",)), now=NOW)
    found = store.search("needle", now=NOW).candidates
    assert found[0].observation.id == titled


def test_of_equals_the_one_saved_last_comes_first(store: MemoryStore) -> None:
    for project in "abc":
        store.save(Draft("Needle", "Same.", project=project), now=NOW)
    for query in ("needle", ""):
        found = store.search(query, now=NOW).candidates
        assert [one.observation.project for one in found] == ["c", "b", "a"]
