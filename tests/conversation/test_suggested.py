"""The count suggested in a tool's description is used if the model gives none."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from efrit_budget.project.search.search import CLOCK_NS
from tests.connection import Connection
from tests.processes import until

MODEL = "claude-sonnet-5"
GIVES = {
    "project_files": ("max_files", {}, "files"),
    "search_content": ("max_matches", {"pattern": "needle"}, "matches"),
}


def offered(sidecar: Connection, session: str) -> dict[str, dict[str, Any]]:
    """Return the parameters of the tools as a turn sends them."""
    begun = sidecar.request(
        "turn/begin", session_id=session, model=MODEL, system="x", user_message="Look."
    )
    return {tool["name"]: tool["input_schema"]["properties"] for tool in begun["tools"]}


@pytest.mark.parametrize("tool", list(GIVES))
def test_a_call_without_a_count_gives_the_suggested_one_and_the_way_on(
    sidecar: Connection, session: str, project: Path, tool: str
) -> None:
    parameter, arguments, noun = GIVES[tool]
    for number in range(900):
        (project / f"{number:03}").write_text("needle\n")
    assert until(lambda: time.time_ns() - project.stat().st_ctime_ns > CLOCK_NS)
    call = {"session_id": session, "name": tool}
    before = sidecar.request("tools/call", arguments=arguments, tool_use_id="a", **call)
    assert len(before["data"][noun]) > 300, "nothing was suggested yet"
    suggested = offered(sidecar, session)[tool][parameter]["default"]
    envelope = sidecar.request("tools/call", arguments=arguments, tool_use_id="b", **call)
    assert envelope["data"]["returned"] == suggested < 900
    assert f"§ Showing {suggested} of 900 {noun}. continuation_token " in envelope["text"]
    token = envelope["data"]["continuation_token"]
    further = sidecar.request(
        "tools/call", arguments={"continuation_token": token}, tool_use_id="c", **call
    )
    assert further["data"]["returned"] == suggested
    asked = {**arguments, parameter: 7}
    few = sidecar.request("tools/call", arguments=asked, tool_use_id="d", **call)
    assert few["data"]["returned"] == 7
