"""The log: each request by its names, with its outcome and time, and no text that anybody wrote."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

import pytest

from tests.connection import RpcError
from tests.repository import Repository
from tests.sidecar import Sidecar

SECRET = "xyzzy plugh"
LINE = re.compile(r".* INFO efrit_budget\.wire\.request: (.*) in \d+\.\d ms$", re.MULTILINE)


@pytest.fixture(params=["info", "debug"])
def level(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A level of the log, set for this test's sidecar."""
    monkeypatch.setenv("EFRIT_BUDGET_LOG__LEVEL", request.param)
    return str(request.param)


@pytest.fixture
def logged(level: str, tmp_path: Path, log_file: Path) -> str:
    """The log of a session in which every text holds the secret."""
    repository = Repository(tmp_path / "project")
    (repository.folder / "notes.md").write_text(f"{SECRET}\n", encoding="utf-8")
    with Sidecar() as sidecar:
        session = sidecar.request("session/open", root=str(repository.folder), session_id="demo")
        turn = sidecar.request(
            "turn/begin",
            session_id=session["session_id"],
            model="demo",
            system=SECRET,
            user_message=SECRET,
        )
        use = {"type": "tool_use", "id": "u1", "name": "search_content"}
        content = [{"type": "text", "text": SECRET}, {**use, "input": {"pattern": SECRET}}]
        sidecar.request("turn/end", session_id="demo", turn_id=turn["turn_id"], content=content)
        call = {"session_id": "demo", "tool_use_id": "u1", "arguments": {"pattern": SECRET}}
        sidecar.request("tools/call", **call, name="search_content")
        for method, params in (
            ("tools/call", {**call, "tool_use_id": "u2", "name": "xyzzy"}),
            ("tools/call", {**call, "tool_use_id": SECRET, "name": "read_file"}),
            ("xyzzy", {}),
            ("session/status", {"session_id": SECRET}),
            ("memory/save", {"title": SECRET, "content": SECRET, "project": SECRET}),
        ):
            with suppress(RpcError):
                sidecar.request(method, **params)
    return log_file.read_text(encoding="utf-8")


def test_each_request_is_logged_with_its_names_and_its_outcome(logged: str) -> None:
    """The id is the client's own; `?` stands for what could be a text."""
    assert [re.sub(r"id=\d+ ", "", line) for line in LINE.findall(logged)] == [
        "session/open session=demo tool=- tool_use=-: ok",
        "turn/begin session=demo tool=- tool_use=-: ok",
        "turn/end session=demo tool=- tool_use=-: ok",
        "tools/call session=demo tool=search_content tool_use=u1: success",
        "tools/call session=demo tool=? tool_use=u2: error -32004",
        "tools/call session=demo tool=read_file tool_use=?: error",
        "? session=- tool=- tool_use=-: error -32601",
        "session/status session=? tool=- tool_use=-: error -32001",
        "memory/save session=- tool=- tool_use=-: ok",
    ]


def test_nothing_that_was_said_sought_or_found_is_in_the_log(logged: str, level: str) -> None:
    """At `debug` there is more, such as each program that was run, and none of its arguments."""
    assert "xyzzy" not in logged
    assert "plugh" not in logged
    assert (" rg ended with 0 in " in logged) == (level == "debug")
