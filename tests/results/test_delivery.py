"""The text around a page: how much it shows, how to go on, and its cost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from efrit_budget.results.body import Body
from efrit_budget.results.delivery import Delivery, deliver, filled
from efrit_budget.results.footer import Terms, with_footer
from efrit_budget.results.tokens import Place, continuation_token

TEN = Body("123456789\n" * 10, "files", tuple(range(0, 100, 10)))
HUNDRED = Body("123456789\n" * 100, "files", tuple(range(0, 1_000, 10)))


def delivered(
    body: Body,
    allowance: int,
    start: int = 0,
    remaining: int | None = None,
    *,
    pressed: bool = False,
) -> Delivery:
    """Deliver a page of result r7, with a token for each character."""
    return deliver(body, 7, start, Terms("s", allowance, len, remaining, pressed), ())


def lines_behind(delivery: Delivery, body: Body) -> list[str]:
    """Return the lines after the page itself."""
    page = body.text[delivery.start : delivery.end]
    assert delivery.text.startswith(page)
    return delivery.text.removeprefix(page).lstrip("\n").splitlines()


@pytest.mark.parametrize(("allowance", "room"), [(100, 94), (1_000, 940), (10, 10), (50, 47)])
def test_six_percent_of_an_allowance_are_kept_back(allowance: int, room: int) -> None:
    assert filled(allowance) == room


def test_a_whole_result_has_its_footer_alone() -> None:
    delivery = delivered(TEN, 1_000)
    assert lines_behind(delivery, TEN) == ["📏 ~113 tokens"]
    assert delivery.page == {"total": 10, "returned": 10}
    assert delivery.tokens == 113


def test_the_footer_tells_what_is_left_and_never_less_than_nothing() -> None:
    assert delivered(TEN, 1_000, remaining=57_900).text.endswith("📏 ~124 tokens · 57k left")
    assert delivered(TEN, 1_000, remaining=50).text.endswith("tokens · 0 left")


def test_a_page_tells_what_it_shows_of_how_many_and_how_to_go_on() -> None:
    delivery = delivered(HUNDRED, 400, remaining=10_000)
    token = continuation_token("s", Place(7, delivery.end))
    shown = delivery.end // 10
    assert 15 <= shown <= 30
    assert lines_behind(delivery, HUNDRED)[0] == (
        f"§ Showing {shown} of 100 files. continuation_token {token} continues."
    )
    assert delivery.page == {
        "total": 100,
        "returned": shown,
        "continuation_token": token,
        "budget_note": f"{shown} of 100. Pass continuation_token to continue; "
        f"the budget allows ~{9_600 * shown // 400:,} more.",
    }


def test_a_page_on_the_floor_says_that_little_is_left() -> None:
    text = delivered(HUNDRED, 400, pressed=True).text
    assert " of 100 files. Little budget is left. continuation_token " in text


def test_without_a_known_rest_the_note_promises_nothing() -> None:
    note = delivered(HUNDRED, 400).page["budget_note"]
    assert str(note).endswith(" of 100. Pass continuation_token to continue.")
    spent = delivered(HUNDRED, 400, remaining=300).page["budget_note"]
    assert str(spent).endswith("; the budget allows ~0 more.")


def test_pages_of_one_long_item_say_that_they_show_a_part() -> None:
    body = Body("lead\n" + "x" * 2_000 + "\n", "files", (5,))
    second = delivered(body, 400, start=700)
    assert lines_behind(second, body)[0].startswith("§ Showing a part of one of 1 files. ")
    assert second.page["returned"] == 0
    before = Body("lead\n" * 200 + "x\n", "files", (1_000,))
    assert lines_behind(delivered(before, 400), before)[0].startswith(
        "§ Showing none yet of 1 files. "
    )


def test_what_was_counted_and_not_stored_is_told_on_the_last_page() -> None:
    more = replace(TEN, total=2_500)
    delivery = delivered(more, 1_000)
    told = "§ Only the first 10 of 2,500 files were stored."
    assert lines_behind(delivery, more)[0] == told
    assert delivery.page == {"total": 2_500, "returned": 10}
    hinted = replace(more, hint="files; narrow the glob.")
    assert lines_behind(delivered(hinted, 1_000), hinted)[0] == (
        "§ Showing 10 of 2,500 files; narrow the glob."
    )
    assert len(lines_behind(delivered(replace(TEN, total=10), 1_000), TEN)) == 1


def test_where_the_tool_goes_on_the_end_of_what_is_stored_has_a_token_too() -> None:
    body = replace(TEN, more={"offset": 11}, position="Lines 1-10 of a.el.")
    delivery = delivered(body, 1_000)
    token = continuation_token("s", Place(7, 100))
    assert lines_behind(delivery, body)[0] == (
        f"§ Lines 1-10 of a.el. continuation_token {token} continues."
    )
    assert delivery.page == {"total": 10, "returned": 10, "continuation_token": token}


def test_what_has_no_room_is_a_line_with_its_handle() -> None:
    terms = Terms("s", 160, len, None)
    small = deliver(HUNDRED, 7, 500, terms, ("A long note. " * 10,))
    assert (small.start, small.end) == (500, 500)
    assert small.text == (
        "§ r7: stored, not shown, 100 files: the allowance is too small for it."
        " recall_result r7 brings it.\n📏 ~112 tokens"
    )
    token = continuation_token("s", Place(7, 500))
    assert small.page == {"total": 100, "returned": 0, "continuation_token": token}
    pressed = deliver(HUNDRED, 7, 500, replace(terms, pressed=True), ("A long note. " * 10,))
    assert "100 files: no budget is left for it. " in pressed.text
    small = delivered(HUNDRED, 50, start=500, remaining=900)
    assert small.text == "§ r7 stored, not shown\n📏 ~46 tokens · 854 left"
    tiny = delivered(HUNDRED, 40, start=500, remaining=900)
    assert tiny.text == "§ r7 stored, not shown\n📏 ~35 tokens"


def test_notes_stand_before_the_line_that_says_how_to_go_on() -> None:
    terms = Terms("s", 400, len, None)
    lines = lines_behind(deliver(HUNDRED, 7, 0, terms, ("One.", "Two.")), HUNDRED)
    assert lines[:2] == ["§ One.", "§ Two."]
    assert lines[2].startswith("§ Showing ")


def test_a_footer_that_can_agree_with_no_figure_gets_an_empty_line() -> None:
    """By this counter 99 costs 100, and 100 costs 101."""

    def cost(text: str) -> int:
        return len(text) + text.endswith(("~99 tokens", "~100 tokens"))

    terms = Terms("s", 400, cost, None)
    assert with_footer("x" * 84, terms)[0].endswith("x\n📏 ~97 tokens")
    assert with_footer("x" * 86, terms) == (f"{'x' * 86}\n\n📏 ~101 tokens", 101)


def test_a_price_above_the_cost_keeps_the_page_within_its_allowance() -> None:
    terms = Terms("s", 400, lambda text: len(text) // 4, None, price=len)
    delivery = deliver(HUNDRED, 7, 0, terms, ())
    assert len(delivery.text) <= 400
    assert delivery.tokens == len(delivery.text) // 4
    assert delivery.end > 100
