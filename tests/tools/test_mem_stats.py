"""Counting observations, through a real sidecar."""

from __future__ import annotations

import json

from efrit_budget.budget.estimate import estimate
from efrit_budget.tools.registry import discover, entry
from tests.tools.conftest import Call, shown
from tests.tools.mem import most, save


def test_an_empty_memory_holds_nothing(call: Call) -> None:
    assert shown(call("mem_stats")) == "0 observations, 0 earlier revisions, 0 deleted"


def test_observations_are_counted_by_type_project_and_scope(call: Call) -> None:
    save(call, "One")
    save(call, "Two", type="fix", project="other")
    save(call, "Three", scope="personal", topic_key="k")
    save(call, "Three again", scope="personal", topic_key="k")
    call("mem_delete", id=save(call, "Four"))
    envelope = call("mem_stats")
    lines = shown(envelope).splitlines()
    assert lines[0] == "3 observations, 1 earlier revisions, 1 deleted"
    assert lines[2:] == [
        "type: note 2, fix 1",
        "project: project 2, other 1",
        "scope: project 2, personal 1",
    ]
    assert envelope["data"]["kinds"] == {"note": 2, "fix": 1}
    assert call("mem_stats", project="other")["data"]["observations"] == 1


def test_a_scope_chooses_a_level_and_a_limit_say_how_many_counts_are_told(call: Call) -> None:
    for index in range(25):
        save(call, f"Number {index}", project=f"p{index:02}", scope="team" if index else "personal")
    team = call("mem_stats", scope="team")
    assert (team["data"]["observations"], team["data"]["scopes"]) == (24, {"team": 24})
    assert len(shown(call("mem_stats", detail_level="summary")).splitlines()) == 2
    assert shown(call("mem_stats")).splitlines()[3].endswith("p18 1, p19 1, 5 more")
    assert shown(call("mem_stats", limit=2)).splitlines()[3] == "project: p00 1, p01 1, 23 more"
    assert shown(call("mem_stats", detail_level="full")).splitlines()[3].endswith("p23 1, p24 1")


def test_counts_of_many_projects_keep_to_the_budget(call: Call) -> None:
    for index in range(30):
        save(call, f"Number {index}", project=f"a rather long name of a project {index}")
    assert most(call("mem_stats", max_tokens=100)["text"]) <= 100


def test_the_seven_tools_together_cost_a_turn_less_than_nine_hundred_tokens() -> None:
    tools = [entry(tool) for tool in discover() if tool.name.startswith("mem_")]
    sent = [{key: tool[key] for key in ("name", "description", "input_schema")} for tool in tools]
    assert len(tools) == 7
    assert sum(estimate(json.dumps(tool, separators=(",", ":"))) for tool in sent) < 900
