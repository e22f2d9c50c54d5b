"""The order of what is found: relevance first, then age, importance and how often it was read."""

from __future__ import annotations

import random

import pytest

from efrit_budget.memory.observation import Draft
from efrit_budget.memory.ranking import DAY, Clock, best, parts_of
from efrit_budget.memory.store import MemoryStore

NOW = 1_800_000_000.0


def test_the_best_are_the_same_as_when_all_are_looked_at() -> None:
    chosen = random.Random(8)
    matches = [
        (number, chosen.random() * 8, NOW - chosen.random() * 1e7, chosen.random(), number % 9)
        for number in range(1, 2_000)
    ]
    clock = Clock(NOW)
    scores = {match[0]: parts_of(match, clock).score for match in matches}
    wanted = sorted(scores, key=lambda number: (scores[number], number), reverse=True)[:25]
    found = best(sorted(matches, key=lambda match: -match[1]), 25, clock)
    assert [number for number, _ in found] == wanted


@pytest.mark.parametrize(("halvings", "left"), [(0, 1), (0.5, 0.75), (1, 0.5), (2, 0.25), (900, 0)])
def test_recency_halves_with_each_half_life(halvings: float, left: float) -> None:
    parts = parts_of((1, 1.0, NOW - halvings * 7 * DAY, 0.5, 0), Clock(NOW, 7))
    assert parts.recency == pytest.approx(left)


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
