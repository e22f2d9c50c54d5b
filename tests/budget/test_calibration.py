"""The calibration of estimates by the model's replies."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from efrit_budget.budget.calibration import (
    HIGHEST,
    LOWEST,
    MOST_FRAME,
    Calibration,
    counts_of,
    output_size,
    true_prompt_size,
)
from efrit_budget.errors import Json

USAGE = {"input_tokens": 10, "cache_read_input_tokens": 200, "cache_creation_input_tokens": 3}
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@pytest.mark.parametrize("truth", [0.8, 1.0, 1.3, 2.0])
@pytest.mark.parametrize("first", [1.0, 1.3])
def test_a_few_replies_find_the_true_factor(first: float, truth: float) -> None:
    calibration = Calibration(first)
    for turn in range(1, 11):
        raw, exact = turn * 2_000, turn * 800
        calibration = calibration.after(raw, exact, round(raw * truth) + exact)
    assert calibration.factor == pytest.approx(truth, rel=0.03)


@given(st.integers(0, 10**7), st.integers(0, 10**7), st.integers(-(10**9), 10**9))
def test_the_factor_stays_within_its_bounds_whatever_is_reported(
    raw: int, exact: int, true_prompt: int
) -> None:
    after = Calibration(1.0).after(raw, exact, true_prompt)
    assert LOWEST <= after.factor <= HIGHEST


def test_a_sample_that_cannot_be_true_changes_nothing() -> None:
    calibration = Calibration(1.2, samples=5, error=0.02)
    assert calibration.after(10_000, 0, 10_000_000) == calibration
    assert calibration.after(10_000, 9_000, 500) == calibration
    assert calibration.after(5, 0, 20) == calibration


@pytest.mark.parametrize(
    ("raw", "true_prompt", "learns"),
    [
        (399, 500, False),
        (400, 500, True),
        (1_200, 200, False),
        (1_200, 201, True),
        (1_200, 7_199, True),
        (1_200, 7_200, False),
    ],
)
def test_a_sample_is_too_small_or_too_far_off_from_a_limit_on(
    raw: int, true_prompt: int, learns: bool
) -> None:
    before = Calibration(1.0)
    assert (before.after(raw, 0, true_prompt) != before) is learns


def test_the_first_sample_counts_for_more_than_those_after_it() -> None:
    first = Calibration(1.0).after(1_000, 500, 2_500)
    assert first.as_dict() == {"factor": 1.6, "samples": 1, "recent_error": 0.4, "frame": 16.0}
    second = first.after(1_000, 500, 2_500)
    assert second.as_dict() == {"factor": 1.72, "samples": 2, "recent_error": 0.328, "frame": 16.0}


def test_the_factor_goes_no_further_than_half_and_two_and_a_half() -> None:
    high = low = Calibration(1.0)
    for _ in range(10):
        high, low = high.after(1_000, 0, 5_000), low.after(1_000, 0, 200)
    assert (high.factor, low.factor) == (2.5, 0.5)


def test_tokens_are_rounded_up() -> None:
    assert Calibration(1.3).tokens(7) == 10
    assert Calibration(1.3, frame=2.5).tokens(7, results=2) == 15


def test_what_stands_around_results_teaches_nothing_of_the_factor() -> None:
    plain = Calibration(1.0).after(1_000, 500, 2_500)
    assert Calibration(1.0, frame=20).after(1_000, 500, 2_700, results=10).factor == plain.factor


@pytest.mark.parametrize("truth", [0, 5, 25, 60])
def test_short_results_find_the_frame(truth: int) -> None:
    calibration = Calibration(1.2)
    for size in range(60):
        calibration = calibration.after_results(size, round(size * 1.2) + 2 * truth, 2)
    assert calibration.frame == pytest.approx(truth, abs=1)


def test_a_large_result_says_little_of_the_frame_and_none_nothing() -> None:
    before = Calibration(1.0, frame=16)
    assert before.after_results(30_000, 31_000, 1).frame == pytest.approx(16, abs=0.1)
    assert before.after_results(0, 31_000, 0) == before
    assert before.after_results(10, -31_000, 1) == before


def test_the_frame_stays_within_its_bounds() -> None:
    calibration = Calibration(1.0)
    for _ in range(100):
        calibration = calibration.after_results(10, 100_000, 1)
    assert calibration.frame <= MOST_FRAME
    for _ in range(200):
        calibration = calibration.after_results(10, 0, 1)
    assert calibration.frame >= 0


def test_what_the_model_wrote_is_told_where_it_wrote_something() -> None:
    assert output_size({"output_tokens": 7}) == 7
    assert output_size({"output_tokens": 0}) is None
    assert output_size({"output_tokens": True}) is None
    assert output_size([]) is None


def test_counts_that_cannot_be_true_are_left_out() -> None:
    usage = {"input_tokens": 99_999_999, "output_tokens": 100_000_000, "server_tool_use": 3}
    assert counts_of(usage) == {"input_tokens": 99_999_999}
    assert counts_of({"input_tokens": 0, "output_tokens": -1}) == {"input_tokens": 0}
    assert counts_of(None) == {}


def test_the_recent_error_is_that_of_the_prediction() -> None:
    after = Calibration(1.0).after(10_000, 0, 12_500)
    assert after.as_dict()["recent_error"] == pytest.approx(0.2)


def test_the_prompt_is_what_was_read_written_and_neither() -> None:
    assert true_prompt_size(USAGE) == 213


@given(ANYTHING)
def test_any_usage_block_is_borne(usage: Json) -> None:
    for found in (true_prompt_size(usage), output_size(usage)):
        assert found is None or found > 0
    assert all(isinstance(count, int) for count in counts_of(usage).values())


@pytest.mark.parametrize(
    "usage",
    [
        None,
        {},
        [],
        {"input_tokens": -5},
        {"input_tokens": "9"},
        {"input_tokens": True},
        {"input_tokens": 10**12},
        {"input_tokens": 0, "cache_read_input_tokens": None},
        {"input_tokens": 5, "cache_read_input_tokens": -1},
    ],
)
def test_a_missing_or_absurd_usage_block_tells_nothing(usage: Json) -> None:
    assert true_prompt_size(usage) is None


def test_long_results_move_the_frame_less_than_short_ones() -> None:
    """Their own tokens are not known as well as what stands around them."""
    before = Calibration(1.0)
    moves = [
        before.after_results(raw, raw + 100, results=1).frame - before.frame
        for raw in (0, 200, 2_000, 20_000)
    ]
    assert moves == sorted(moves, reverse=True)
    assert moves[0] > 5 * moves[2] > 25 * moves[3] > 0


def test_the_wire_has_rounded_figures() -> None:
    found = Calibration(1.234567, samples=3, error=0.0123456, frame=11.26)
    assert found.as_dict() == {
        "factor": 1.2346,
        "samples": 3,
        "recent_error": 0.0123,
        "frame": 11.3,
    }
