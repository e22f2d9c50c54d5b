"""The lines that end an answer, word for word, and their price, which holds for every estimate."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from efrit_budget.budget.estimate import estimate
from efrit_budget.budget.plain import dearest, plain_tokens, plain_tokens_ceil
from efrit_budget.memory.wording import (
    IN_SESSION,
    OBSERVATIONS,
    RESULTS,
    budget_line,
    navigation_hint,
)

FIVE_OBSERVATIONS = (
    "Showing 5 of 47 observations. Increase limit or use mem_get_observation #ID for details."
)


@pytest.mark.parametrize(
    ("hint", "line"),
    [
        (RESULTS, "Showing 5 of 47 results. Use limit or mem_get_observation #ID for more."),
        (OBSERVATIONS, FIVE_OBSERVATIONS),
        (IN_SESSION, "Showing 5 of 47 observations in session."),
    ],
)
def test_an_answer_that_is_cut_says_how_much_of_it_all_it_shows(hint: str, line: str) -> None:
    assert navigation_hint(5, 47, hint) == line


@given(st.integers(0, 100), st.integers(0, 100))
def test_there_is_a_hint_of_one_line_only_where_something_is_left_out(
    showing: int, total: int
) -> None:
    hint = navigation_hint(showing, total, RESULTS)
    assert bool(hint) == (showing < total)
    assert "\n" not in hint


def test_an_answer_that_its_budget_has_cut_says_what_it_costs_and_shows() -> None:
    assert budget_line(1912, 2000, 7, 1047, "observations") == (
        "⚡ Budget: ~1,912/2,000 tokens used. 7 of 1,047 observations shown."
        " Increase max_tokens or use detail_level=summary for more."
    )


@given(st.text(st.characters()))
def test_no_estimate_of_a_text_is_above_the_price_it_is_packed_by(text: str) -> None:
    price = dearest(estimate)(text)
    assert price >= max(estimate(text), plain_tokens(text), plain_tokens_ceil(text))
