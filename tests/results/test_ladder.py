"""Packing items into a budget by a ladder of renderings."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from efrit_budget.results.ladder import Item, pack

FORMS = st.lists(
    st.text(st.characters(codec="ascii", exclude_characters="\n"), max_size=60),
    min_size=1,
    max_size=4,
)
ITEMS = st.lists(FORMS.map(lambda forms: Item(tuple(sorted(forms, key=len, reverse=True)))))


@given(ITEMS, st.integers(0, 400))
def test_what_is_shown_fits_and_with_what_is_omitted_makes_the_whole(
    items: list[Item], allowance: int
) -> None:
    packed = pack(items, allowance, len)
    assert sum(len(line) + 1 for line in packed.lines) == packed.tokens <= allowance
    assert packed.shown + packed.omitted == len(items)


def test_an_item_falls_to_a_shorter_form_before_it_is_left_out() -> None:
    items = [Item(("a" * 20, "a" * 10, "a")), Item(("b" * 20, "b" * 10, "b"))]
    assert pack(items, 32, len).lines == ("a" * 20, "b" * 10)


def test_an_oversize_item_is_named_with_its_size_and_packing_goes_on() -> None:
    items = [Item(("x" * 500, "big")), Item(("small",))]
    packed = pack(items, 40, len)
    assert packed.lines == ("big (500 tokens)", "small")
    assert packed.omitted == 0


def test_one_item_that_fits_in_no_form_does_not_end_the_packing() -> None:
    items = [Item(("x" * 500, "y" * 100)), Item(("small",))]
    packed = pack(items, 20, len)
    assert (packed.lines, packed.omitted) == (("small",), 1)
