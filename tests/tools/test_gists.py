"""Tests of what a call's envelope and the transcript say for the person, through a real sidecar."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.connection import Connection


def call(sidecar: Connection, session: str, name: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool, agreeing to its question, and return the envelope."""
    params = {"session_id": session, "name": name, "arguments": arguments, "tool_use_id": name}
    envelope: dict[str, Any] = sidecar.request("tools/call", **params)
    if envelope["status"] == "needs_confirmation":
        params |= {"confirm_id": envelope["confirm"]["id"]}
        envelope = sidecar.request("tools/call", **params)
    return envelope


@pytest.mark.parametrize(
    ("name", "arguments", "gist"),
    [
        ("search_content", {"pattern": "two"}, "2 matches"),
        ("search_content", {"pattern": "one"}, "1 match"),
        ("search_content", {"pattern": "absent"}, "no matches"),
        ("search_content", {"pattern": "two", "max_matches": 1}, "1 of 2 matches"),
        ("search_content", {"pattern": "two", "files_only": True}, "1 file"),
        ("project_files", {}, "1 file"),
        ("run_command", {"command": "echo a; exit 2"}, "exit 2"),
        ("run_command", {"command": "kill -9 $$"}, "ended by SIGKILL"),
        ("mem_save", {"title": "t", "content": "c"}, None),
        ("read_file", {"path": "absent"}, None),
    ],
)
def test_a_call_says_in_a_few_words_what_came_of_it(
    sidecar: Connection,
    session: str,
    project: Path,
    name: str,
    arguments: dict[str, Any],
    gist: str | None,
) -> None:
    (project / "a.txt").write_text("one\ntwo\ntwo\n")
    assert call(sidecar, session, name, **arguments).get("gist") == gist


def test_the_client_says_who_denied_a_call_and_private_words_are_taken_out(
    sidecar: Connection, session: str
) -> None:
    sidecar.request(
        "tools/record",
        session_id=session,
        name="edit_file",
        tool_use_id="u",
        text="no",
        gist="you: <private>x</private>\vno",
        ending="denied",
        said=True,
    )
    (entry,) = sidecar.request("session/transcript", session_id=session)["turns"]
    assert entry["gist"] == "you: [private]␋no"
    assert entry["ending"] == "denied"
