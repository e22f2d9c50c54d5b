"""Reading one whole observation, through a real sidecar."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tools.conftest import Call, shown
from tests.tools.mem import most, save


def test_all_that_is_known_stands_above_the_content(call: Call, session: str) -> None:
    first = save(call, "Before")
    number = save(
        call,
        "Retries back off",
        "Wait twice.\n\nEach time.",
        type="decision",
        tags=["a", "b c"],
        importance=0.9,
        topic_key="retry",
        related=[first],
    )
    lines = shown(call("mem_get_observation", id=number)).splitlines()
    assert lines[0] == f"#{number} [decision] Retries back off"
    assert lines[1].endswith(
        "project project, scope project, importance 0.9, tags: a, b c, topic_key retry,"
        f" session {session}"
    )
    assert lines[2:] == ["Related: #1 Before", "", "Wait twice.", "", "Each time."]
    assert "Related: #2 Retries back off" in call("mem_get_observation", id=first)["text"]


def test_what_was_read_often_ranks_higher(call: Call) -> None:
    save(call, "Needle", "One needle.")
    save(call, "Needle", "Two needle.")
    for _ in range(3):
        call("mem_get_observation", id=1)
    found = call("mem_search", query="needle", explain=True)["data"]["results"]
    assert [one["id"] for one in found] == [1, 2]
    assert found[0]["rank"]["access"] == pytest.approx(3 / 8)


def test_a_level_says_how_much_of_it_is_told(call: Call) -> None:
    first = save(call, "Before")
    second = save(call, "Also before")
    number = save(call, "Story", "It went on and on. " * 100, related=[first, second])
    whole = shown(call("mem_get_observation", id=number))
    begun = shown(call("mem_get_observation", id=number, detail_level="standard", limit=1))
    head = shown(call("mem_get_observation", id=number, detail_level="summary", limit=1))
    assert whole.count("It went") == 100
    assert 1 < begun.count("It went") < 20
    assert begun.startswith(f"{head}\n\n")
    assert head.endswith("\nRelated: #1 Before")
    assert "content" not in call("mem_get_observation", id=number, detail_level="summary")["data"]


@pytest.mark.parametrize("budget", [120, 333, 5000])
def test_every_page_keeps_to_the_budget_and_all_pages_are_the_whole(
    call: Call, budget: int
) -> None:
    content = "".join(f"Line {line} of a plain English text. 漢字 é\n" for line in range(150))
    number = save(call, "Long", content)
    envelope = call("mem_get_observation", id=number, max_tokens=budget)
    pages = []
    while True:
        assert most(envelope["text"]) <= budget
        pages.append(shown(envelope).rpartition("\nShowing ")[0] or shown(envelope))
        token = envelope["data"].get("continuation_token")
        if token is None:
            break
        envelope = call("mem_get_observation", continuation_token=token, max_tokens=budget)
    whole = "".join("".join(pages).split())
    assert "".join(content.split()) in whole


@pytest.mark.parametrize("budget", [50, 60, 70])
def test_a_budget_too_small_for_a_page_keeps_to_it_and_names_the_result(
    call: Call, budget: int
) -> None:
    number = save(call, "Long", "A line of plain English text.\n" * 200)
    envelope = call("mem_get_observation", id=number, max_tokens=budget)
    assert most(envelope["text"]) <= budget
    assert envelope["handle"] in envelope["text"]


def test_its_own_project_and_scope_may_be_named(call: Call) -> None:
    number = save(call, "One", project="other", scope="team")
    envelope = call("mem_get_observation", id=number, project="other", scope="team")
    assert envelope["status"] == "success"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"id": 7}, "there is no observation #7; mem_search finds some"),
        ({"id": 1, "revision": 3}, "observation #1 has no revision 3; there are: 1, 2"),
        ({"id": 10**30}, "must be from 1"),
        ({"id": "one"}, "id"),
        ({"id": 1, "project": "other"}, "observation #1 is of project project"),
        ({"id": 1, "scope": "team"}, "observation #1 is of scope project"),
    ],
)
def test_bad_arguments_are_named(call: Call, arguments: dict[str, Any], said: str) -> None:
    save(call, "Port", "80", topic_key="port")
    save(call, "Port", "81", topic_key="port")
    envelope = call("mem_get_observation", **arguments)
    assert envelope["status"] == "error"
    assert said in envelope["message"]


def test_several_are_read_in_one_call_and_those_missing_are_named(call: Call) -> None:
    first, second = save(call, "One", "The first."), save(call, "Two", "The second.")
    envelope = call("mem_get_observation", id=[second, first, 99])
    text = envelope["text"]
    assert text.index("The second.") < text.index("The first.")
    assert "there is no observation #99" in text
    assert [one["id"] for one in envelope["data"]["observations"]] == [second, first]
