"""Packing items into a budget by choosing among renderings of different lengths."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from efrit_budget.results.packer import Item, outwards, pack

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
    assert sum(len(line) + 1 for line in packed.texts) == packed.tokens <= allowance
    assert packed.shown == sum(line.shows for line in packed.lines)


def test_an_item_falls_to_a_shorter_form_before_it_is_left_out() -> None:
    items = [Item(("a" * 20, "a" * 10, "a")), Item(("b" * 20, "b" * 10, "b"))]
    assert pack(items, 32, len).texts == ("a" * 20, "b" * 10)


def test_an_oversize_item_is_named_with_its_size_and_packing_goes_on() -> None:
    items = [Item(("x" * 500,), ("big",)), Item(("small",))]
    packed = pack(items, 40, len)
    assert packed.texts == ("big (500 tokens)", "small")
    assert (packed.shown, packed.total) == (1, 2)


def test_names_take_what_the_items_that_are_shown_leave() -> None:
    big = Item(("x" * 500,), ("a rather long name", "big"))
    assert pack([big, big, Item(("small",))], 10, len).texts == ("small",)
    assert pack([big, big, Item(("small",))], 24, len).texts == ("big (500 tokens)", "small")
    assert pack([big], 40, len).texts == ("a rather long name (500 tokens)",)


def test_one_item_that_fits_in_no_form_does_not_end_the_packing() -> None:
    items = [Item(("x" * 500, "y" * 100)), Item(("small",))]
    packed = pack(items, 20, len)
    assert (packed.texts, packed.shown) == (("small",), 1)


@given(ITEMS.filter(len), st.data(), st.integers(0, 400))
def test_around_a_focus_both_sides_are_even_and_without_holes(
    items: list[Item], data: st.DataObject, allowance: int
) -> None:
    focus = data.draw(st.integers(0, len(items) - 1))
    packed = pack(items, allowance, len, focus)
    places = [line.place for line in packed.lines if line.shows]
    assert packed.tokens <= allowance
    if not places:
        return
    assert places == list(range(places[0], places[-1] + 1))
    before, after = focus - places[0], places[-1] - focus
    assert before >= 0 <= after
    assert before <= after + 1 or after == len(items) - 1 - focus
    assert after <= before + 1 or before == focus


@given(st.integers(0, 9), st.integers(1, 9), st.integers(0, 400))
def test_around_a_focus_long_neighbours_on_one_side_do_not_make_the_other_longer(
    focus: int, after: int, allowance: int
) -> None:
    items = [Item(("x" * 90,))] * focus + [Item(("focus",))] + [Item(("y",))] * after
    shown = [line.place for line in pack(items, allowance, len, focus).lines]
    sides = sum(place < focus for place in shown), sum(place > focus for place in shown)
    assert sides[1] - sides[0] <= 1 or sides[0] == focus
    if allowance >= 1000:
        assert len(shown) == len(items)


def test_outwards_means_by_turns_before_and_after() -> None:
    assert list(outwards(1, 5)) == [1, 0, 2, 3, 4]
    assert list(outwards(3, 5)) == [3, 2, 4, 1, 0]
    assert list(outwards(0, 1)) == [0]
