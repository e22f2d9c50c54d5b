"""Texts made to be miscounted: none has far more tokens than its estimate."""

from __future__ import annotations

import importlib
import random

import pytest

from efrit_budget.budget.estimate import estimate
from tests.budget.made_counts import MADE_COUNTS
from tests.budget.made_texts import made
from tests.soak import amount

MOST = 1.2
LEAST_TOKENS = 300


@pytest.mark.parametrize("seed", MADE_COUNTS)
def test_a_made_text_has_at_most_a_fifth_more_tokens_than_its_estimate(seed: int) -> None:
    one = made(seed)
    tokens, _ = MADE_COUNTS[seed]
    assert tokens <= MOST * estimate(one.text), one.name


@pytest.mark.parametrize("seed", MADE_COUNTS)
def test_a_made_text_has_the_same_estimate_on_every_machine(seed: int) -> None:
    """After a change on purpose, `python -m tests.budget.write_made_counts` writes them anew."""
    _, estimated = MADE_COUNTS[seed]
    assert estimate(made(seed).text) == estimated


@pytest.mark.soak(alone=True)
def test_thousands_of_made_texts_have_at_most_a_fifth_more_tokens() -> None:
    real = importlib.import_module("tests.benchmarks.tokenizers_real").claude()
    some = map(made, random.Random(4).sample(range(10**6, 10**9), amount(0, 1_000)))
    counted = [(one, real([one.text])[0]) for one in some]
    low = [
        (tokens / estimate(one.text), one.name)
        for one, tokens in counted
        if tokens >= LEAST_TOKENS and tokens > MOST * estimate(one.text)
    ]
    assert not low, sorted(low, reverse=True)
