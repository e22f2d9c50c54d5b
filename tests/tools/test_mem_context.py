"""The observations that earlier sessions left, read through a real sidecar."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.connection import Connection
from tests.tools.conftest import Call, shown
from tests.tools.mem import listed, most, paged, save, shown_of

STORY = "It went on and on for a while, and then it stopped. " * 40


def asked_before(sidecar: Connection, root: Path, *words: str) -> str:
    """Open a session, have a person ask something in it, and return it."""
    opened = sidecar.request("session/open", root=str(root))
    for text in words:
        turn = sidecar.request(
            "turn/begin", session_id=opened["session_id"], model="m", user_message=text
        )
        sidecar.request(
            "turn/end",
            session_id=opened["session_id"],
            turn_id=turn["turn_id"],
            usage=None,
            content=[{"type": "text", "text": "Done."}],
            stop_reason="end_turn",
        )
    sidecar.request("session/rename", session_id=opened["session_id"], title="The parser")
    return str(opened["session_id"])


def test_an_empty_memory_says_so(call: Call) -> None:
    envelope = call("mem_context")
    assert envelope["status"] == "success"
    assert shown(envelope) == "No observation of project project was saved."
    assert envelope["data"]["observations"] == []
    assert shown(call("mem_context", project="")) == "No observation was saved."


def test_it_is_this_project_s_unless_another_or_all_are_asked_for(call: Call) -> None:
    there = save(call, "There", project="other")
    assert shown(call("mem_context")) == (
        "No observation of project project was saved; of others 1, which an empty project shows."
    )
    here = save(call, "Here")
    assert listed(call("mem_context")) == [here]
    assert listed(call("mem_context", project="other")) == [there]
    assert listed(call("mem_context", project="")) == [here, there]


def test_sessions_requests_and_observations_come_latest_first(
    sidecar: Connection, call: Call, project: Path
) -> None:
    before = asked_before(sidecar, project, "Fix the parser.", "Now <private>x</private> test it.")
    save(call, "First", "Some content.")
    save(call, "Second", "Two.", project="other")
    lines = shown(call("mem_context", project="")).splitlines()
    assert lines[0] == "## Sessions"
    assert lines[1].startswith(f"{before} (20")
    assert lines[1].endswith(" The parser")
    assert lines[2] == "## Requests"
    assert lines[3].endswith("Z Now [private] test it.")
    assert lines[4].endswith("Z Fix the parser.")
    assert lines[5] == "## Observations"
    assert lines[6].startswith("#2 [note] Second (20")
    assert lines[6].endswith(", project other)")
    assert lines[7:] == ["Two.", lines[8], "Some content."]


def test_the_session_that_asks_is_no_past_one(call: Call, session: str) -> None:
    save(call, "One")
    assert session not in call("mem_context")["text"]


def test_filters_hold_in_every_section(sidecar: Connection, call: Call, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    asked_before(sidecar, elsewhere, "Something else.")
    save(call, "Here")
    there = save(call, "There", project="elsewhere")
    assert "Something else." not in call("mem_context", project="project")["text"]
    envelope = call("mem_context", project="elsewhere")
    assert "Something else." in envelope["text"]
    assert listed(envelope) == [there]


def test_the_line_on_more_tells_the_true_total(call: Call) -> None:
    for index in range(7):
        save(call, f"Number {index}")
    envelope = call("mem_context", limit=3)
    assert shown(envelope).splitlines()[-1] == (
        "Showing 3 of 7 observations. Increase limit or use mem_get_observation #ID for details."
    )
    assert "Showing" not in call("mem_context")["text"]


@pytest.mark.parametrize("level", ["summary", "standard", "full"])
@pytest.mark.parametrize("budget", [50, 75, 100, 150, 300, 1000, 4000])
def test_the_whole_answer_keeps_to_the_budget(
    sidecar: Connection, call: Call, project: Path, level: str, budget: int
) -> None:
    for index in range(3):
        asked_before(sidecar, project, f"{index} {STORY}", f"again {index} {STORY}")
    for index in range(12):
        save(call, f"Number {index}", f"{index} {STORY}")
    envelope = call("mem_context", max_tokens=budget, detail_level=level, limit=10)
    assert most(envelope["text"]) <= budget
    [(given, total)] = shown_of(envelope) or {(10, 12)}
    assert (given, total) == (len(listed(envelope)), 12)


def test_the_sections_share_the_budget(sidecar: Connection, call: Call, project: Path) -> None:
    for index in range(5):
        asked_before(sidecar, project, f"{index} {STORY}")
    for index in range(12):
        save(call, f"Number {index}", f"{index} {STORY}")
    text = call("mem_context", max_tokens=600)["text"]
    assert "## Sessions" in text
    assert "## Requests (" in text, "some of its five had no room, and it says so"
    assert text.count("\n§ #") > 3


@pytest.mark.parametrize("more", [{}, {"max_tokens": 4000}, {"max_tokens": 300}])
def test_sessions_and_requests_are_counted_all_of_them(
    sidecar: Connection, call: Call, project: Path, more: dict[str, int]
) -> None:
    for index in range(7):
        asked_before(sidecar, project, f"First {index}.", f"Second {index}.")
    save(call, "One")
    lines = call("mem_context", **more)["text"].splitlines()
    titles = {line for line in lines if line.startswith("§ ## ")}
    for title, in_all in (("Sessions", 7), ("Requests", 14)):
        [told] = [line for line in titles if title in line]
        shown_lines = sum("Z) The parser" in line for line in lines)
        if title == "Requests":
            shown_lines = sum(line.endswith(tuple(f"d {n}." for n in range(7))) for line in lines)
            shown_lines += sum(line.endswith(tuple(f"t {n}." for n in range(7))) for line in lines)
        assert told == f"§ ## {title} ({shown_lines} of {in_all})"
    if not more:
        assert [line for line in lines if "Z Second 6." in line], "the latest request is shown"


def test_an_item_that_is_only_named_counts_as_left_out(call: Call) -> None:
    for index in range(6):
        save(call, f"Number {index} {'of a long title ' * 25}", f"{index}: {STORY}")
    short = save(call, "Short", "It fits.")
    envelope = call("mem_context", max_tokens=140)
    assert "... " not in envelope["text"]
    assert listed(envelope) == [short]
    assert "1 of 7 observations shown" in envelope["text"]
    assert (envelope["data"]["returned"], envelope["data"]["total"]) == (1, 7)
    assert " tokens)\n" in envelope["text"], "the next is named with its size"


def test_the_last_page_says_how_many_of_all_it_shows_and_how_to_get_more(
    sidecar: Connection, project: Path, call: Call
) -> None:
    for index in range(20):
        save(call, f"Number {index}", f"{index} {STORY}")
    pages = list(paged(sidecar, project, "mem_context", limit=6))
    for envelope in pages:
        assert shown_of(envelope) == {(len(listed(envelope)), 20)}
    assert shown(pages[-1]).splitlines()[-1] == (
        f"Showing {len(listed(pages[-1]))} of 20 observations."
        " Increase limit or use mem_get_observation #ID for details."
    )
    assert sum(len(listed(envelope)) for envelope in pages) == 6


def test_a_line_of_an_observation_is_shown_where_the_line_on_the_budget_would_leave_no_room(
    call: Call,
) -> None:
    for number in range(10):
        save(call, f"Decision {number}", f"We decided thing {number} for some reason.")
    for most_tokens in (80, 90, 100, 110):
        envelope = call("mem_context", max_tokens=most_tokens)
        assert listed(envelope), envelope["text"]
        assert envelope["tokens"] <= most_tokens
