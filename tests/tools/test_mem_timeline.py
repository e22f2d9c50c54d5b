"""What was saved around an observation, through a real sidecar."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tools.conftest import Call, shown
from tests.tools.mem import listed, most, save, shown_of

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
    if found:
        assert 5 in found
        assert found == sorted(found)
        assert abs(sum(place < 5 for place in found) - sum(place > 5 for place in found)) <= 1
    for given, total in shown_of(envelope):
        assert (given, total) == (len(found), 11)


def test_another_session_s_observations_are_not_between(
    call: Call, eleven: list[int], sidecar: Any, project: Any
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
