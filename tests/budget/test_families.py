"""The families of tokenizers: what their estimates promise, beside real counts."""

from __future__ import annotations

from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from efrit_budget.budget.estimate import SAMPLE, estimate
from efrit_budget.budget.families import (
    CLASSES,
    CLAUDE,
    UNKNOWN,
    count_classes,
    family_named,
    family_names,
)
from efrit_budget.budget.family_factors import COSTS, FACTORS
from tests.budget.family_counts import FAMILY_COUNTS
from tests.budget.made_texts import made
from tests.budget.measured import MEASURED

TEXTS = [text for _, text in MEASURED.values()]
ANY_TEXT = st.text(st.characters())


def test_each_family_has_a_factor_for_each_class_of_script() -> None:
    assert {len(factors) for factors in FACTORS.values()} == {len(CLASSES)}
    assert len(COSTS) == len(CLASSES) - 1
    assert set(FACTORS) == set(FAMILY_COUNTS) | {UNKNOWN}


@pytest.mark.parametrize("seed", range(7000, 7030))
def test_claude_s_family_counts_what_the_estimate_counts(seed: int) -> None:
    text = made(seed).text
    assert family_named(CLAUDE).estimate(text) == estimate(text)


@pytest.mark.parametrize("name", FAMILY_COUNTS)
def test_an_estimate_of_a_family_is_hardly_ever_too_low_and_right_in_the_mean(name: str) -> None:
    family = family_named(name)
    pairs = zip(TEXTS, FAMILY_COUNTS[name], strict=True)
    misses = [family.estimate(text) / tokens - 1 for text, tokens in pairs]
    assert min(misses) >= -0.17
    assert fmean(map(abs, misses)) <= 0.21


@pytest.mark.parametrize("name", FAMILY_COUNTS)
def test_the_family_of_unknown_models_with_its_first_factor_is_too_low_for_no_tokenizer(
    name: str,
) -> None:
    family = family_named(UNKNOWN)
    for text, tokens in zip(TEXTS, FAMILY_COUNTS[name], strict=True):
        assert family.estimate(text) * 1.3 >= 0.9 * tokens


@given(ANY_TEXT)
def test_an_unknown_model_is_charged_at_least_what_claude_is(text: str) -> None:
    assert family_named(UNKNOWN).estimate(text) >= estimate(text)


@given(ANY_TEXT, st.sampled_from(family_names()))
def test_any_text_costs_at_least_one_token_in_any_family(text: str, name: str) -> None:
    family = family_named(name)
    assert family.estimate(text) >= min(1, len(text))
    assert family.rough(text) >= min(1, len(text))


@given(ANY_TEXT, st.sampled_from(family_names()), st.integers(0, 100_000))
def test_an_estimate_is_converted_to_another_family_and_back(
    text: str, name: str, tokens: int
) -> None:
    family = family_named(name)
    there = family.from_claude(text, tokens)
    assert tokens <= family.to_claude(text, there) <= tokens + 4
    assert family.from_claude(text, family.to_claude(text, there)) in range(there, there + 4)


def test_digits_and_scripts_cost_what_each_family_makes_of_them() -> None:
    numbers, thai = "4711 0815 1234 5678\n" * 100, MEASURED["thai"][1]
    assert family_named("gemma").estimate(numbers) > 1.5 * family_named("o200k").estimate(numbers)
    assert family_named("o200k").estimate(thai) < 0.5 * family_named(CLAUDE).estimate(thai)


@pytest.mark.parametrize("name", [CLAUDE, "o200k"])
def test_a_rough_count_of_a_long_text_is_near_the_whole_count(name: str) -> None:
    family, text = family_named(name), MEASURED["russian"][1] * (20 * SAMPLE // 300)
    assert family.rough(text) == pytest.approx(family.estimate(text), rel=0.15)


def test_characters_are_counted_by_the_class_of_their_script() -> None:
    counted = dict(
        zip(
            CLASSES[1:],
            count_classes("Ab 12 «äż» Δδ Ж דג عر हि கா ไท 漢か 한 — 🙂 ქ ệ"),
            strict=True,
        )
    )
    assert counted == {
        "capitals": 1,
        "digits": 2,
        "marked letters": 4,
        "vietnamese": 1,
        "greek": 2,
        "cyrillic": 1,
        "hebrew": 2,
        "arabic": 2,
        "devanagari": 2,
        "indic": 2,
        "thai": 2,
        "chinese and japanese": 2,
        "korean": 1,
        "symbols": 3,
        "other scripts": 1,
    }


def test_a_family_that_is_not_in_the_table_counts_as_claude_s() -> None:
    assert family_named("martian").estimate("Some words.") == estimate("Some words.")
