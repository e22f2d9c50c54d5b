"""The plain forms give the seeds' exact results."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from efrit_budget.budget.plain import (
    index_tokens,
    memory_tokens,
    plain_tokens,
    plain_tokens_ceil,
    token_footer,
)

ANY_TEXT = st.text(st.characters())


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("a", 1), ("abcd", 1), ("abcdefg", 1), ("abcdefgh", 2), ("x" * 4000, 1000)],
)
def test_the_plain_estimate_is_a_quarter_of_the_bytes_rounded_down(text: str, tokens: int) -> None:
    assert plain_tokens(text) == tokens


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("x" * 4001, 1001)]
)
def test_the_ceiling_estimate_is_a_quarter_of_the_bytes_rounded_up(text: str, tokens: int) -> None:
    assert plain_tokens_ceil(text) == tokens


@pytest.mark.parametrize(("text", "down", "up"), [("日本語", 2, 3), ("é", 1, 1), ("📏📏", 2, 2)])
def test_bytes_are_counted_and_not_characters(text: str, down: int, up: int) -> None:
    assert (plain_tokens(text), plain_tokens_ceil(text)) == (down, up)


@pytest.mark.parametrize(
    ("tokens", "footer"),
    [
        (0, "\n📏 ~0 tokens"),
        (999, "\n📏 ~999 tokens"),
        (1234, "\n📏 ~1,234 tokens"),
        (1234567, "\n📏 ~1,234,567 tokens"),
    ],
)
def test_the_footer_groups_thousands_with_commas(tokens: int, footer: str) -> None:
    assert token_footer(tokens) == footer


def test_a_memory_costs_its_three_texts_and_twenty() -> None:
    assert memory_tokens("abcde", "x" * 9, ["auth", "jwt"]) == 2 + 3 + 3 + 20


def test_the_parts_of_a_memory_are_rounded_up_one_by_one() -> None:
    assert memory_tokens("a", "b", ["c"]) == 3 + 20


def test_an_empty_memory_costs_its_overhead() -> None:
    assert memory_tokens("", "") == 20


def test_an_index_entry_costs_its_title_its_tags_and_fifteen() -> None:
    assert index_tokens("abcde") == 2 + 15
    assert index_tokens("abcde", ["auth", "jwt"]) == 2 + 3 + 15


@given(ANY_TEXT)
def test_the_plain_forms_agree_within_one_token_for_any_text(text: str) -> None:
    assert 0 <= plain_tokens_ceil(text) - plain_tokens(text) <= 1


@pytest.mark.parametrize("text", ["\ud800", "\x00", "a\udcffb"])
def test_lone_surrogates_and_nulls_are_counted_like_others(text: str) -> None:
    assert plain_tokens(text) == 1
    assert memory_tokens(text, text, [text]) == 3 * plain_tokens_ceil(text) + 20
