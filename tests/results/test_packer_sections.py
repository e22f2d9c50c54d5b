"""Sections that share one budget: the whole answer fits, and every item is counted."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from efrit_budget.budget.estimate import estimate
from efrit_budget.results.packer import Answer, Item, Section, whole, within

WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\n"), min_size=1, max_size=80)
FORMS = st.lists(WORDS, min_size=1, max_size=3).map(
    lambda forms: Item(tuple(sorted(forms, key=len, reverse=True)))
)


def section(title: str | None, *items: Item) -> Section:
    return Section(title, items, [item.forms[-1] for item in items])


SECTIONS = st.lists(
    st.builds(lambda title, items: section(title, *items), st.none() | WORDS, st.lists(FORMS)),
    max_size=4,
)


def laid_out(lead: str, sections: list[Section], allowance: int) -> Answer:
    found = within(lead, sections, "things", allowance, len)
    assert found is not None
    return found


@given(WORDS, SECTIONS, st.integers(0, 400))
def test_an_answer_is_within_its_budget_or_there_is_none(
    lead: str, sections: list[Section], allowance: int
) -> None:
    answer = within(f"{lead}\n", sections, "things", allowance, estimate)
    if answer is None:
        assert estimate(f"{lead}\n") > allowance
        return
    assert estimate(answer.body.text) <= allowance
    assert answer.total == sum(len(one.items) for one in sections)
    assert answer.shown in {answer.body.whole_count, 0}


@given(WORDS, SECTIONS)
def test_with_room_for_everything_everything_is_shown_in_full(
    lead: str, sections: list[Section]
) -> None:
    full = whole(f"{lead}\n", sections, "things")
    answer = laid_out(f"{lead}\n", sections, 10_000_000)
    assert answer.body == full
    assert answer.shown == answer.total


def test_sections_share_equally_and_what_one_leaves_goes_to_the_other() -> None:
    small = section("few", Item(("one",)))
    large = section("many", *[Item((f"{number:02}",)) for number in range(40)])
    body = laid_out("", [large, small], 54).body
    assert body.text == "§ many\n" + "".join(f"{n:02}\n" for n in range(12)) + "§ few\none\n"
    twice = laid_out("", [large, section("more", *large.items)], 50).body
    assert twice.text.count("00\n") == 2


def test_an_item_too_long_is_named_with_its_size_and_those_behind_it_are_shown() -> None:
    answer = laid_out("", [section("all", Item(("x" * 500,), ("big",)), Item(("small",)))], 40)
    assert answer.body.text == "§ all\nbig (500 tokens)\nsmall\n"
    assert (answer.shown, answer.body.whole_count, answer.body.item_data) == (1, 1, ("small",))


def test_items_that_are_named_only_are_none_of_those_shown() -> None:
    answer = laid_out("", [section("all", Item(("x" * 500,), ("big",)))], 40)
    assert answer.body.text == "§ all\nbig (500 tokens)\n"
    assert (answer.shown, answer.body.whole_count) == (0, 0)
    assert answer.body.data_of(0, 100) == {"things": []}


def test_the_title_of_a_section_of_which_nothing_fits_is_left_out() -> None:
    answer = laid_out(
        "lead\n", [section("a title", Item(("x" * 90,))), section("b", Item(("y",)))], 20
    )
    assert answer.body.text == "lead\n§ b\ny\n"
    assert (answer.shown, answer.total) == (1, 2)
