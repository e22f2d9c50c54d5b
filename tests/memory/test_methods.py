"""The `memory/*` methods, through a real sidecar."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from efrit_budget.budget.estimate import estimate
from efrit_budget.budget.plain import plain_tokens_ceil
from tests.connection import Connection, RpcError


def save(sidecar: Connection, title: str, content: str | None = None, **more: Any) -> int:
    """Save something and return its number."""
    said = f"Text of {title}." if content is None else content
    saved = sidecar.request("memory/save", title=title, content=said, **more)
    number: int = saved["id"]
    return number


def test_what_a_person_saves_is_found_and_read_whole(sidecar: Connection) -> None:
    number = save(sidecar, "Retries", "They wait. " * 500, project="p", tags=["network"])
    found = sidecar.request("memory/search", query="retry", project="p", tags=["network"])
    assert [one["id"] for one in found["results"]] == [number]
    assert "content" not in found["results"][0]
    assert sidecar.request("memory/get", id=number)["content"] == "They wait. " * 500
    assert sidecar.request("memory/search", query="retry", project="q")["total"] == 0


def test_a_model_finds_what_a_person_saved(sidecar: Connection, session: str) -> None:
    save(sidecar, "Retries", project="project")
    call = {"session_id": session, "name": "mem_search", "tool_use_id": "u1"}
    envelope = sidecar.request("tools/call", **call, arguments={"query": "retries"})
    assert "Retries" in envelope["text"]


def test_the_timeline_is_that_of_the_project_where_no_session_saved(sidecar: Connection) -> None:
    numbers = [save(sidecar, f"Title {number}", project="p") for number in range(5)]
    line = sidecar.request("memory/timeline", id=numbers[2], before=1, after=5)
    assert [one["id"] for one in line["before"]] == numbers[1:2]
    assert [one["id"] for one in line["after"]] == numbers[3:]
    assert (line["focus"]["content"], line["total"]) == ("Text of Title 2.", 5)


@pytest.mark.parametrize("form", ["markdown", "json"])
def test_a_pack_is_within_its_tokens(sidecar: Connection, form: str) -> None:
    for number in range(20):
        save(sidecar, f"Title {number}", "word " * 30 * number + "end", project="p")
    pack = sidecar.request("memory/pack", project="p", tokens=700, format=form)
    price = max(estimate(pack["text"]), plain_tokens_ceil(pack["text"]))
    assert price == pack["tokens"] <= 700
    assert pack["packed"] > 0
    assert pack["packed"] + pack["left_out"] == 20
    if form == "json":
        assert len(json.loads(pack["text"])["memories"]) == pack["packed"]


@pytest.mark.parametrize("method", ["memory/get", "memory/timeline"])
def test_what_is_not_there_is_named(sidecar: Connection, method: str) -> None:
    with pytest.raises(RpcError) as caught:
        sidecar.request(method, id=7)
    assert caught.value.code == -32602
    assert "there is no observation #7" in str(caught.value)


@pytest.mark.parametrize(
    ("method", "params", "field"),
    [
        ("memory/search", {"limit": 0}, "limit"),
        ("memory/get", {"id": 0}, "id"),
        ("memory/save", {"title": "x", "content": "y", "importance": 2}, "importance"),
        ("memory/pack", {"format": "html"}, "format"),
        ("memory/timeline", {"id": 1, "before": -1}, "before"),
    ],
)
def test_a_wrong_param_is_named(
    sidecar: Connection, method: str, params: dict[str, Any], field: str
) -> None:
    with pytest.raises(RpcError) as caught:
        sidecar.request(method, **params)
    assert caught.value.data["fields"][0]["field"] == field


def test_a_session_is_not_offered_the_tools_it_was_opened_without(
    sidecar: Connection, project: Path
) -> None:
    opened = sidecar.request("session/open", root=str(project), deny=["mem_save", "no_such_tool"])
    session = opened["session_id"]
    turn = sidecar.request(
        "turn/begin",
        session_id=session,
        model="some-model",
        system=[{"type": "text", "text": "Work."}],
        user_message=[{"type": "text", "text": "Go."}],
    )
    names = {tool["name"] for tool in turn["tools"]}
    assert "mem_search" in names
    assert "mem_save" not in names
    with pytest.raises(RpcError, match="deny mem_save"):
        sidecar.request("tools/call", session_id=session, name="mem_save", tool_use_id="u1")
