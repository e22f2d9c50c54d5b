"""Tests of `session/*`: opening, listing and closing sessions, and the next sidecar."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.connection import Connection, RpcError
from tests.local_sidecar import LocalSidecar
from tests.sidecar import Sidecar

NOT_FOUND, CLOSED, CONFLICT, INVALID = -32001, -32002, -32005, -32602


def _open(sidecar: Connection, root: Path, **params: Any) -> dict[str, Any]:
    opened: dict[str, Any] = sidecar.request("session/open", root=str(root), **params)
    return opened


def _refused(sidecar: Connection, method: str, **params: Any) -> RpcError:
    with pytest.raises(RpcError) as caught:
        sidecar.request(method, **params)
    return caught.value


def _wait(session: str, use: str) -> dict[str, Any]:
    return {
        "session_id": session,
        "name": "wait",
        "arguments": {"seconds": 0},
        "tool_use_id": use,
    }


# Opening


def test_a_session_has_a_short_id_a_root_and_a_budget(sidecar: Connection, project: Path) -> None:
    opened = _open(sidecar, project)
    assert opened["session_id"].isalnum()
    assert len(opened["session_id"]) <= 8
    assert opened["root"] == str(project)
    assert opened["state"] == "open"
    tiers = opened["budget"]["tiers"]
    limits = {name: tier["limit"] for name, tier in tiers.items()}
    assert limits == {
        "system": 8_000,
        "history": 12_000,
        "tool_results": 40_000,
        "user_message": 10_000,
        "response": 30_000,
    }
    assert opened["budget"]["total"] == 100_000
    status = sidecar.request("session/status", session_id=opened["session_id"])
    assert status["budget"] == opened["budget"]


def test_ids_are_all_different(sidecar: Connection, project: Path) -> None:
    assert len({_open(sidecar, project)["session_id"] for _ in range(50)}) == 50


def test_opening_an_id_that_there_is_takes_the_session_up_again(
    sidecar: Connection, project: Path
) -> None:
    first = _open(sidecar, project, session_id="mine")
    sidecar.request("session/close", session_id="mine")
    again = _open(sidecar, project, session_id="mine")
    assert again["state"] == "open"
    assert again["created"] == first["created"]


def test_an_id_of_another_root_is_refused_and_the_root_is_named(
    sidecar: Connection, project: Path, tmp_path: Path
) -> None:
    _open(sidecar, project, session_id="mine")
    error = _refused(sidecar, "session/open", root=str(tmp_path), session_id="mine")
    assert error.code == CONFLICT
    assert str(project) in error.message


@pytest.mark.parametrize(
    "session_id", ["", "Mine", "-mine", "my session", "x" * 33, "a/b", "é", "mine\n", 5]
)
def test_an_id_that_cannot_be_typed_is_refused(
    sidecar: Connection, project: Path, session_id: Any
) -> None:
    error = _refused(sidecar, "session/open", root=str(project), session_id=session_id)
    assert error.code == INVALID
    assert error.data["fields"][0]["field"] == "session_id"


@pytest.mark.parametrize(
    "name",
    ["with space", "größe-日本-🙂", "new\nline", "tab\t", 'quote"s', "back\\slash", "-dash", "*"],
)
def test_a_root_may_have_any_name_that_is_text(
    sidecar: Connection, tmp_path: Path, name: str
) -> None:
    root = tmp_path / name
    root.mkdir()
    (root / "a.txt").touch()
    opened = _open(sidecar, root)
    assert opened["root"] == str(root)
    call = {"name": "file_info", "arguments": {"paths": ["a.txt"]}, "tool_use_id": "use"}
    found = sidecar.request("tools/call", session_id=opened["session_id"], **call)
    assert found["status"] == "success"
    assert len(sidecar.request("session/list", root=str(root))["sessions"]) == 1


def test_every_way_to_a_root_is_the_same_root(
    sidecar: Connection, project: Path, tmp_path: Path, home: Path
) -> None:
    (tmp_path / "alias").symlink_to(project)
    (home / "alias").symlink_to(project)
    ways = [project, tmp_path / "alias", project / ".." / "project", Path("~/alias")]
    assert {_open(sidecar, way)["root"] for way in ways} == {str(project)}
    for way in ways:
        assert len(sidecar.request("session/list", root=str(way))["sessions"]) == 4


@pytest.mark.parametrize("name", ["missing", "file", "loop", "dangling", "pipe", "a\0b"])
def test_what_is_no_folder_cannot_be_a_root(sidecar: Connection, tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "dangling").symlink_to("gone")
    os.mkfifo(tmp_path / "pipe")
    error = _refused(sidecar, "session/open", root=f"{tmp_path}/{name}")
    assert error.code == INVALID
    assert error.data["fields"][0]["field"] == "root"


@pytest.mark.parametrize("root", ["", None, 5, ["/"]])
def test_a_root_that_is_no_path_is_refused(sidecar: Connection, root: Any) -> None:
    assert _refused(sidecar, "session/open", root=root).data["fields"][0]["field"] == "root"


def test_a_root_nobody_has_is_refused(sidecar: Connection) -> None:
    error = _refused(sidecar, "session/open", root="~nobody-has-this-name/x")
    assert error.code == INVALID


def test_a_root_whose_real_name_is_no_text_is_used_or_refused_by_name(
    sidecar: Connection, tmp_path: Path
) -> None:
    (tmp_path / os.fsdecode(b"latin\xe9")).mkdir()
    (tmp_path / "alias").symlink_to(os.fsdecode(b"latin\xe9"))
    try:
        opened = _open(sidecar, tmp_path / "alias")
    except RpcError as error:
        assert error.code == INVALID  # noqa: PT017
        assert error.data["fields"][0]["field"] == "root"  # noqa: PT017
    else:
        assert sidecar.request("session/status", session_id=opened["session_id"])


# Finding


@pytest.mark.parametrize("method", ["status", "resume", "close", "delete", "purge"])
def test_a_session_that_there_is_not_is_told_as_such(sidecar: Connection, method: str) -> None:
    for wrong in ("nosuch", "NOSUCH", "../../x", "%", "' OR 1=1 --", "é"):
        error = _refused(sidecar, f"session/{method}", session_id=wrong)
        assert error.code == NOT_FOUND
        assert "session/list" in error.message


def test_sessions_are_listed_the_last_used_first(
    sidecar: Connection, project: Path, tmp_path: Path
) -> None:
    for name in ("one", "two", "three"):
        _open(sidecar, project, session_id=name)
    _open(sidecar, tmp_path, session_id="elsewhere")
    sidecar.request("tools/call", **_wait("one", "use"))
    sidecar.request("session/close", session_id="two")
    listed = sidecar.request("session/list", root=str(project))["sessions"]
    assert [session["session_id"] for session in listed] == ["one", "three"]
    assert [session["calls"] for session in listed] == [1, 0]
    every = sidecar.request("session/list", include_closed=True)["sessions"]
    assert {session["session_id"] for session in every} == {"one", "two", "three", "elsewhere"}


def test_a_list_with_prices_has_the_usage_and_the_dollars_of_each(
    sidecar: Connection, project: Path
) -> None:
    _open(sidecar, project, session_id="mine")
    without, priced = (
        sidecar.request("session/list", price=price)["sessions"][0] for price in (False, True)
    )
    assert "dollars" not in without
    assert priced == without | {"usage": {}, "dollars": 0.0}


def test_a_list_of_a_root_that_is_gone_still_finds_its_sessions(
    sidecar: Connection, project: Path
) -> None:
    _open(sidecar, project, session_id="mine")
    project.rmdir()
    listed = sidecar.request("session/list", root=str(project))["sessions"]
    assert [session["session_id"] for session in listed] == ["mine"]


@pytest.mark.parametrize("root", ["a\0b", "~nobody-has-this-name", "", "x" * 5000])
def test_a_list_of_a_root_that_cannot_be_is_empty_or_refused(
    sidecar: Connection, root: str
) -> None:
    try:
        assert sidecar.request("session/list", root=root)["sessions"] == []
    except RpcError as error:
        assert error.code == INVALID  # noqa: PT017


# Renaming and ending


def test_a_session_is_renamed_with_any_text(sidecar: Connection, session: str) -> None:
    for title in ("Täglich 🙂", "", "new\nline", "x" * 200):
        renamed = sidecar.request("session/rename", session_id=session, title=title)
        assert renamed["title"] == title
    assert _refused(sidecar, "session/rename", session_id=session, title="x" * 201).code == INVALID


def test_a_closed_session_keeps_what_it_holds_and_can_be_resumed(
    sidecar: Connection, session: str
) -> None:
    first = sidecar.request("tools/call", **_wait(session, "use"))
    used = sidecar.request("session/status", session_id=session)["budget"]
    for _ in range(2):
        assert sidecar.request("session/close", session_id=session)["state"] == "closed"
    assert _refused(sidecar, "tools/call", **_wait(session, "other")).code == CLOSED
    assert sidecar.request("session/status", session_id=session)["state"] == "closed"
    resumed = sidecar.request("session/resume", session_id=session)
    assert (resumed["state"], resumed["budget"]) == ("open", used)
    assert sidecar.request("tools/call", **_wait(session, "use")) == first


def test_a_deleted_session_is_gone(sidecar: Connection, session: str) -> None:
    sidecar.request("tools/call", **_wait(session, "use"))
    assert sidecar.request("session/delete", session_id=session)["deleted"] is True
    assert _refused(sidecar, "session/status", session_id=session).code == NOT_FOUND
    assert _refused(sidecar, "session/delete", session_id=session).code == NOT_FOUND


def test_a_purged_session_keeps_its_line_and_says_so(sidecar: Connection, session: str) -> None:
    sidecar.request("tools/call", **_wait(session, "use"))
    for _ in range(2):
        purged = sidecar.request("session/purge", session_id=session)
        assert (purged["purged"], purged["state"]) == (True, "closed")
    status = sidecar.request("session/status", session_id=session)
    assert status["budget"]["tiers"]["tool_results"]["used"] == 0
    listed = sidecar.request("session/list", include_closed=True)["sessions"]
    assert [session["calls"] for session in listed] == [0]


# Outliving the sidecar


@pytest.mark.process
def test_a_session_that_a_killed_sidecar_left_open_resumes_exactly(
    sidecar: Sidecar, session: str, project: Path
) -> None:
    results = [sidecar.request("tools/call", **_wait(session, f"use-{n}")) for n in range(5)]
    sidecar.request("session/rename", session_id=session, title="mine")
    before = sidecar.request("session/status", session_id=session)
    sidecar.kill()
    with LocalSidecar() as other:
        listed = other.request("session/list", root=str(project))["sessions"]
        assert [(s["session_id"], s["title"], s["calls"]) for s in listed] == [(session, "mine", 5)]
        resumed = other.request("session/resume", session_id=session)
        after = other.request("session/status", session_id=session)
        assert after | {"touched": before["touched"]} == before
        assert resumed["budget"] == before["budget"]
        again = [other.request("tools/call", **_wait(session, f"use-{n}")) for n in range(5)]
        assert again == results


def test_a_session_is_the_same_in_two_sidecars(sidecar: Connection, session: str) -> None:
    with LocalSidecar() as other:
        sidecar.request("tools/call", **_wait(session, "use-1"))
        other.request("tools/call", **_wait(session, "use-2"))
        one = sidecar.request("session/status", session_id=session)
        assert other.request("session/status", session_id=session) == one
        handles = {
            sidecar.request("tools/call", **_wait(session, use))["handle"]
            for use in ("use-1", "use-2")
        }
        assert handles == {"r1", "r2"}


def test_params_by_position_are_the_same_params(sidecar: Connection, session: str) -> None:
    sidecar.send({"jsonrpc": "2.0", "id": "p", "method": "session/status", "params": [session]})
    by_name = sidecar.request("session/status", session_id=session)
    assert json.dumps(sidecar.result("p")) == json.dumps(by_name)
    many = [session, *range(50)]
    sidecar.send({"jsonrpc": "2.0", "id": "m", "method": "session/status", "params": many})
    assert sidecar.reply("m")["error"]["code"] == INVALID
