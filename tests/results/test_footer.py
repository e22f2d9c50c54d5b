"""Texts that state their own tokens."""

from __future__ import annotations

import pytest

from efrit_budget.results.footer import state_own_cost


def write(tokens: int, blank: str) -> str:
    return f"~{tokens} tokens{blank}"


def one_off(text: str) -> int:
    """Return 380 for a text that states 379 and 379 for others, unless a blank line follows."""
    return 379 if text.endswith("\n") or "~379" not in text else 380


def test_blank_lines_make_a_count_right_that_no_figure_makes_right() -> None:
    assert state_own_cost(write, one_off, 2_000) == ("~379 tokens\n", 379)


def test_without_blank_lines_the_count_is_never_too_low() -> None:
    text, tokens = state_own_cost(write, one_off, 2_000, may_fill=False)
    assert (text, tokens) == ("~380 tokens", 380)
    assert one_off(text) <= tokens


@pytest.mark.parametrize("first", [0, 379, 380, 10**6])
def test_the_first_attempt_does_not_matter(first: int) -> None:
    assert state_own_cost(write, one_off, first, may_fill=False)[1] == 380
