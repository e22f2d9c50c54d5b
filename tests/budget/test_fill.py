"""How full a prompt is."""

from __future__ import annotations

import pytest

from efrit_budget.budget.fill import Fill, fill_of


@pytest.mark.parametrize(
    ("used", "fill"),
    [
        (0, Fill.AMPLE),
        (56_000, Fill.AMPLE),
        (56_001, Fill.LOW),
        (69_999, Fill.LOW),
        (70_000, Fill.FULL),
        (90_000, Fill.FULL),
    ],
)
def test_a_prompt_is_low_above_four_fifths_and_full_at_its_limit(used: int, fill: Fill) -> None:
    assert fill_of(used, 70_000) is fill


def test_a_prompt_that_may_have_nothing_is_full() -> None:
    assert fill_of(0, 0) is Fill.FULL
