"""The observations saved around another one, read through a real sidecar."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.connection import Connection
from tests.tools.conftest import Call, shown
from tests.tools.mem import listed, most, paged, save, shown_of

STORY = "It went on and on for a while, and then it stopped. " * 20


@pytest.fixture
def eleven(call: Call) -> list[int]:
    """Eleven observations of one session."""
    return [save(call, f"Number {index}", f"{index} {STORY}") for index in range(11)]


def test_the_neighbours_stand_in_the_order_of_time_around_the_focus(
    call: Call, eleven: list[int]
) -> None:
    envelope = call("mem_timeline", id=eleven[5], before=2, after=1, detail_level="summary")
    lines = shown(envelope).splitlines()
    assert [line.partition(" (")[0] for line in lines[:4]] == [
        "#4 [note] Number 3",
        "#5 [note] Number 4",
        "> #6 [note] Number 5",
        "#7 [note] Number 6",
    ]
    assert lines[4] == "Showing 4 of 11 observations in session."


def test_none_before_means_none(call: Call, eleven: list[int]) -> None:
    assert listed(call("mem_timeline", id=eleven[5], before=0, after=2)) == eleven[5:8]
    assert listed(call("mem_timeline", id=eleven[5], before=0, after=0)) == [eleven[5]]


def test_a_window_as_large_as_the_session_has_no_line_on_more(
    call: Call, eleven: list[int]
) -> None:
    envelope = call("mem_timeline", id=eleven[5], detail_level="summary")
    assert listed(envelope) == eleven
    assert "Showing" not in envelope["text"]


def test_a_limit_takes_from_both_ends_evenly(call: Call, eleven: list[int]) -> None:
    for limit, wanted in ((1, [5]), (2, [4, 5]), (3, [4, 5, 6]), (6, [2, 3, 4, 5, 6, 7])):
        envelope = call("mem_timeline", id=eleven[5], limit=limit)
        assert listed(envelope) == [eleven[place] for place in wanted]
    assert listed(call("mem_timeline", id=eleven[0], limit=3)) == eleven[:3]


@pytest.mark.parametrize("budget", [50, 80, 120, 200, 400, 800])
@pytest.mark.parametrize("level", ["summary", "standard", "full"])
def test_a_budget_keeps_the_focus_and_is_spread_evenly(
    call: Call, eleven: list[int], budget: int, level: str
) -> None:
    envelope = call("mem_timeline", id=eleven[5], max_tokens=budget, detail_level=level)
    assert most(envelope["text"]) <= budget
    found = [eleven.index(number) for number in listed(envelope)]
    assert not found or 5 in found
    assert uneven(found, 5) <= 1
    for given, total in shown_of(envelope):
        assert (given, total) == (len(found), 11)


def uneven(found: list[int], focus: int) -> int:
    """Return by how many the sides of a focus differ; fail if a number between is missing."""
    assert found == list(range(found[0], found[-1] + 1) if found else [])
    return abs(sum(place < focus for place in found) - sum(place > focus for place in found))


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("level", ["summary", "standard", "full"])
def test_a_side_of_long_titles_does_not_make_the_other_longer(
    call: Call, level: str, turned: bool
) -> None:
    titles = ["長い題名" * 12 + str(index) for index in range(5)]
    titles += ["focus", *(f"short {index}" for index in range(5))]
    numbers = [save(call, title) for title in (titles[::-1] if turned else titles)]
    for budget in range(50, 500, 10):
        envelope = call("mem_timeline", id=numbers[5], max_tokens=budget, detail_level=level)
        found = [numbers.index(number) for number in listed(envelope)]
        assert uneven(found, 5) <= 1, budget


def test_the_focus_keeps_its_mark_and_its_size_where_only_its_name_has_room(call: Call) -> None:
    number = save(call, "A title that goes on and on " * 15, STORY)
    save(call, "After")
    text = call("mem_timeline", id=number, max_tokens=90)["text"]
    assert re.search(rf"^§ > #{number} .*\([\d,]+ tokens\)$", text, re.MULTILINE)
    assert "0 of 2 observations shown" in text


@pytest.mark.parametrize("level", ["summary", "standard", "full"])
def test_the_first_page_is_the_focus_amid_its_neighbours_and_further_pages_have_the_rest(
    sidecar: Connection, project: Path, call: Call, level: str
) -> None:
    numbers = [
        save(call, f"Number {index}", f"{index} {STORY}"[: 60 * index + 9]) for index in range(41)
    ]
    asked: dict[str, Any] = {"id": numbers[20], "before": 30, "after": 15, "detail_level": level}
    pages: list[list[int]] = []
    for envelope in paged(sidecar, project, "mem_timeline", **asked):
        pages.append([numbers.index(number) for number in listed(envelope)])
        assert envelope["data"]["total"] == 41
    assert 20 in pages[0]
    assert uneven(pages[0], 20) <= 1
    seen = [place for page in pages for place in page]
    assert sorted(seen) == list(range(36))
    assert shown(envelope).splitlines()[-1] == (
        f"Showing {len(pages[-1])} of 41 observations in session."
    )


def test_another_session_s_observations_are_not_between(
    call: Call, eleven: list[int], sidecar: Connection, project: Path
) -> None:
    other = sidecar.request("session/open", root=str(project))["session_id"]
    saved = sidecar.request(
        "tools/call",
        session_id=other,
        name="mem_save",
        arguments={"title": "Other", "content": "Other."},
        tool_use_id="other",
    )
    last = save(call, "Last")
    found = listed(call("mem_timeline", id=last))
    assert found == [*eleven[-5:], last]
    assert saved["data"]["id"] not in found


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"id": 99}, "there is no observation #99"),
        ({"id": 0}, "must be from 1"),
        ({"id": 1, "before": -1}, "must be from 0 to 200"),
        ({}, "id"),
    ],
)
def test_bad_arguments_are_named(call: Call, arguments: dict[str, Any], said: str) -> None:
    envelope = call("mem_timeline", **arguments)
    assert envelope["status"] == "error"
    assert said in envelope["message"]
