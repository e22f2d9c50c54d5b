"""Texts that state their own tokens."""

from __future__ import annotations

import pytest

from efrit_budget.results.footer import Terms, state_own_cost, with_footer


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


@pytest.mark.parametrize(
    ("left", "shown"),
    [
        (0, "0"),
        (999, "999"),
        (1_000, "1.0k"),
        (1_099, "1.0k"),
        (1_100, "1.1k"),
        (9_999, "9.9k"),
        (10_000, "10k"),
        (57_999, "57k"),
    ],
)
def test_what_is_left_is_shortened_and_never_rounded_up(left: int, shown: str) -> None:
    terms = Terms("session", 100, lambda _: 20, remaining=left + 20)
    text, tokens = with_footer("found", terms)
    assert (text, tokens) == (f"found\n📏 ~20 tokens · {shown} left", 20)
