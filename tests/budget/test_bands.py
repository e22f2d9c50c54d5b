"""The bands of a budget."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from efrit_budget.budget.bands import Band, Thresholds, band_after, notice, thresholds, warning

MARKS = Thresholds(low=20_000, critical=10_000)


def test_the_thresholds_are_the_seeds_and_at_most_a_fifth_and_a_tenth_of_a_smaller_total() -> None:
    assert thresholds(100_000, 20_000) == Thresholds(20_000, 10_000)
    assert thresholds(1_000_000, 20_000) == Thresholds(20_000, 10_000)
    assert thresholds(50_000, 20_000) == Thresholds(10_000, 5_000)


def test_a_band_begins_below_its_threshold() -> None:
    lefts = (20_000, 19_999, 10_000, 9_999, 0)
    found = [band_after(Band.AMPLE, left, MARKS) for left in lefts]
    assert found == [Band.AMPLE, Band.LOW, Band.LOW, Band.CRITICAL, Band.CRITICAL]


def test_a_band_is_left_only_well_above_its_threshold() -> None:
    assert band_after(Band.LOW, 21_000, MARKS) is Band.LOW
    assert band_after(Band.LOW, 25_000, MARKS) is Band.AMPLE
    assert band_after(Band.CRITICAL, 11_000, MARKS) is Band.CRITICAL
    assert band_after(Band.CRITICAL, 13_000, MARKS) is Band.LOW
    assert band_after(Band.CRITICAL, 30_000, MARKS) is Band.AMPLE


@given(st.lists(st.integers(19_000, 21_000), min_size=2))
def test_what_wavers_about_a_threshold_warns_once(lefts: list[int]) -> None:
    bands = [Band.AMPLE]
    for left in lefts:
        bands.append(band_after(bands[-1], left, MARKS))
    assert sum(later.rank > earlier.rank for earlier, later in pairwise(bands)) <= 1


@given(st.sampled_from(Band), st.integers(0, 100_000), st.integers(0, 100_000))
def test_less_never_gives_a_better_band(band: Band, one: int, other: int) -> None:
    less, more = sorted((one, other))
    assert band_after(band, less, MARKS).rank >= band_after(band, more, MARKS).rank


def test_the_alerts_are_worded_as_designed_down_to_zero() -> None:
    assert notice(18_400) == (
        "[Budget Alert: ~18k tokens remaining, then older results shrink to a line each; "
        "recall_result brings any of them back.]"
    )
    assert warning(18_400) == (
        "[Budget Alert: ~18k tokens remaining. Consider summarizing or completing soon.]"
    )
    assert "~0k tokens" in warning(-5)
