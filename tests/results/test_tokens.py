"""Handles and continuation tokens."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from efrit_budget.results.tokens import (
    Place,
    TokenError,
    continuation_token,
    handle,
    number_of,
    place_of,
)

PLACES = st.builds(Place, st.integers(1, 999_999_999), st.integers(0, 10**11))


@given(PLACES)
def test_a_token_leads_where_it_was_made_for(place: Place) -> None:
    assert place_of("abc", continuation_token("abc", place)) == place


def test_a_token_of_another_session_is_refused_with_what_to_do() -> None:
    token = continuation_token("abc", Place(7, 5230))
    with pytest.raises(TokenError, match="not of this session; call the tool anew"):
        place_of("xyz", token)


@given(st.text())
def test_a_made_up_token_is_refused(text: str) -> None:
    with pytest.raises(TokenError):
        place_of("abc", text)


@given(st.integers(1, 999_999_999))
def test_a_handle_names_its_result(number: int) -> None:
    assert number_of(handle(number)) == number_of(f" R{number} ") == number


@pytest.mark.parametrize("text", ["", "r", "r0", "r-1", "t7", "r7:0", "seven", "r" + "9" * 30])
def test_what_is_no_handle_is_refused(text: str) -> None:
    with pytest.raises(TokenError, match="handle"):
        number_of(text)
