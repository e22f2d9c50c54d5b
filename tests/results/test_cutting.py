"""The places where a page is cut, with a token for each character."""

from __future__ import annotations

import pytest

from efrit_budget.results.body import Body
from efrit_budget.results.pages import continued_header, furthest, page, rest


def lines_of(count: int, length: int = 10) -> Body:
    """Return a body of items of one line each."""
    line = "x" * (length - 1) + "\n"
    return Body(line * count, "lines", tuple(range(0, count * length, length)))


def folders_of(count: int, files: int) -> Body:
    """Return a body of folders, each with a header of 8 characters and files of 10."""
    text, items, headers = "", [], []
    for folder in range(count):
        headers.append(len(text))
        text += f"folder{folder}\n"
        for file in range(files):
            items.append(len(text))
            text += f"  file{file:03}\n"
    return Body(text, "files", tuple(items), tuple(headers))


@pytest.mark.parametrize("characters_per_token", [0.5, 1, 4, 8])
@pytest.mark.parametrize("allowance", [100, 1_000, 5_000])
def test_a_page_takes_most_of_its_allowance_and_never_more(
    allowance: int, characters_per_token: float
) -> None:
    def cost(text: str) -> int:
        return int(len(text) / characters_per_token)

    body = lines_of(20_000, 2)
    cut = page(body, 1_000, allowance, cost)
    assert cut.text == body.text[cut.start : cut.end]
    assert 0.85 * allowance <= cost(cut.text) <= allowance
    assert cut.start == 1_000
    assert cut.end in body.items


def test_what_fits_is_one_page() -> None:
    body = lines_of(5)
    assert page(body, 0, 50, len).end == 50
    assert page(body, 30, 20, len).end == 50


def test_a_page_ends_behind_an_item() -> None:
    assert page(lines_of(100), 0, 95, len).end in (80, 90)
    assert page(lines_of(100), 50, 95, len).end in (130, 140)


def test_a_line_that_is_longer_than_a_page_is_cut_inside() -> None:
    body = Body("y" * 1_000 + "\nz\n", "lines", (0, 1_001))
    cut = page(body, 0, 100, len)
    assert 88 <= cut.end <= 100
    assert 88 <= page(body, cut.end, 100, len).end - cut.end <= 100


def test_an_item_that_is_longer_than_a_page_is_cut_behind_a_line() -> None:
    body = Body("abcdefghi\n" * 50 + "z\n", "entries", (0, 500))
    cut = page(body, 0, 95, len)
    assert cut.end in (80, 90)


def test_a_short_item_before_a_long_one_does_not_leave_a_page_nearly_empty() -> None:
    body = Body("a\n" + "abcdefghi\n" * 50, "entries", (0, 2))
    assert page(body, 0, 95, len).end in (82, 92)


def test_a_page_that_has_no_room_still_goes_on_by_a_character() -> None:
    cut = page(lines_of(5), 3, 0, len)
    assert (cut.start, cut.end, cut.text) == (3, 4, "x")


def test_a_page_amid_a_folder_begins_with_its_header() -> None:
    body = folders_of(2, 10)
    cut = page(body, 28, 80, len)
    assert cut.text.startswith("folder0 (continued)\n  file002\n")
    assert len(cut.text) <= 80
    assert page(body, 108, 90, len).text.startswith("folder1\n  file000\n")


def test_a_header_that_would_take_more_than_a_quarter_of_a_page_is_left_out() -> None:
    body = folders_of(2, 10)
    assert page(body, 28, 79, len).text.startswith("  file002\n")
    assert len(continued_header(body, 28)) == 20


def test_what_stands_before_the_first_header_and_at_one_continues_none() -> None:
    body = Body("lead\nfolder\n  file\n", "files", (12,), (5,))
    assert [continued_header(body, at) for at in (0, 5)] == ["", ""]
    assert continued_header(body, 12) == "folder (continued)\n"


def test_a_header_goes_with_what_is_below_it() -> None:
    body = folders_of(50, 1)
    assert page(body, 0, 100, len).text.endswith("  file000\n")


def test_a_page_holds_no_more_items_than_the_body_lets_it() -> None:
    body = Body(lines_of(9).text, "lines", lines_of(9).items, most=4)
    assert [furthest(body, start) for start in (0, 10, 40, 50)] == [40, 50, 80, 90]
    assert page(body, 0, 1_000, len).end == 40
    assert rest(body, 40, 5, len).end == 80


def test_no_page_begins_before_the_end_of_the_opening() -> None:
    body = Body(lines_of(9).text, "lines", lines_of(9).items, opening=30)
    assert [furthest(body, start) for start in (0, 20, 30)] == [30, 30, 90]
    assert page(body, 0, 1_000, len).end == 30
