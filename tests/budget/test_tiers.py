"""The tiers of a window."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from efrit_budget.budget.tiers import Tier, tier_sizes
from efrit_budget.errors import InvalidParamsError

TOTALS = st.integers(1_000, 10_000_000)


def test_the_default_total_has_the_tiers_of_the_design() -> None:
    assert tier_sizes(100_000, {}) == {
        "system": 8_000,
        "history": 12_000,
        "tool_results": 40_000,
        "user_message": 10_000,
        "response": 30_000,
    }


@given(TOTALS)
def test_with_every_tier_full_exactly_nothing_remains(total: int) -> None:
    assert sum(tier_sizes(total, {}).values()) == total


@given(TOTALS)
def test_tiers_scale_with_the_total(total: int) -> None:
    sizes = tier_sizes(total, {})
    assert sizes[Tier.SYSTEM] == total * 8 // 100
    assert sizes[Tier.TOOL_RESULTS] == total * 40 // 100
    assert 0 <= sizes[Tier.RESPONSE] - total * 30 // 100 <= 4


def test_a_tier_set_by_hand_leaves_the_others_as_they_are() -> None:
    sizes = tier_sizes(100_000, {Tier.TOOL_RESULTS: 20_000})
    assert (sizes[Tier.TOOL_RESULTS], sizes[Tier.HISTORY]) == (20_000, 12_000)


def test_tiers_that_do_not_fit_the_total_are_refused_with_the_sum() -> None:
    with pytest.raises(InvalidParamsError, match=r"the tiers make 160,000, more than .* 100,000"):
        tier_sizes(100_000, {Tier.TOOL_RESULTS: 100_000})


@given(TOTALS, st.dictionaries(st.sampled_from(list(Tier)), st.integers(0, 10_000_000)))
def test_tiers_fit_the_total_or_are_refused(total: int, chosen: dict[Tier, int]) -> None:
    try:
        sizes = tier_sizes(total, chosen)
    except InvalidParamsError:
        return
    assert sum(sizes.values()) <= total
    assert all(sizes[tier] == size for tier, size in chosen.items())
