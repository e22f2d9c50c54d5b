"""Tests of `$/cancelRequest`: it stops the work, the child and the grandchild."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.connection import Connection, RpcError, request
from tests.processes import alive, pid_in, until


def _spawn(sidecar: Connection, session: str, pid_file: Path, **arguments: Any) -> int:
    return sidecar.begin(
        "tools/call",
        session_id=session,
        name="spawn",
        arguments={"seconds": 600, "pid_file": str(pid_file), **arguments},
        tool_use_id="use-spawn",
    )


def _cancelled(sidecar: Connection, request_id: int) -> bool:
    with pytest.raises(RpcError) as caught:
        sidecar.result(request_id)
    return caught.value.code == -32800


@pytest.mark.parametrize("by", ["id", "tool_use_id"])
def test_a_cancelled_call_ends_with_its_child_and_grandchild(
    sidecar: Connection, session: str, tmp_path: Path, by: str
) -> None:
    call = _spawn(sidecar, session, tmp_path / "pid")
    grandchild = pid_in(tmp_path / "pid")
    assert alive(grandchild)
    sidecar.notify("$/cancelRequest", **{by: call if by == "id" else "use-spawn"})
    assert _cancelled(sidecar, call)
    assert until(lambda: not alive(grandchild))
    assert sidecar.request("ping") == "pong"


def test_a_child_that_ignores_the_wish_to_end_is_ended_too(
    sidecar: Connection, session: str, tmp_path: Path
) -> None:
    call = _spawn(sidecar, session, tmp_path / "pid", deaf=True)
    grandchild = pid_in(tmp_path / "pid")
    sidecar.notify("$/cancelRequest", id=call)
    assert _cancelled(sidecar, call)
    assert until(lambda: not alive(grandchild))


@pytest.mark.process
def test_a_call_that_waits_for_a_thread_is_cancelled_at_once(
    sidecar: Connection, session: str
) -> None:
    stubborn = {"session_id": session, "name": "misbehave", "arguments": {"how": "stubborn"}}
    for number in range(16):
        sidecar.begin("tools/call", **stubborn, tool_use_id=f"busy-{number}")
    waiting = sidecar.begin("tools/call", **stubborn, tool_use_id="waiting")
    sidecar.notify("$/cancelRequest", tool_use_id="waiting")
    reply = sidecar.reply(
        waiting,
    )
    assert reply["error"]["code"] == -32800


def test_cancelling_by_tool_use_id_leaves_other_calls_alone(
    sidecar: Connection, session: str
) -> None:
    wait = {"session_id": session, "name": "wait"}
    kept = sidecar.begin("tools/call", **wait, arguments={"seconds": 1}, tool_use_id="kept")
    gone = sidecar.begin("tools/call", **wait, arguments={"seconds": 60}, tool_use_id="gone")
    sidecar.notify("$/cancelRequest", tool_use_id="gone")
    assert _cancelled(sidecar, gone)
    assert sidecar.result(kept)["status"] == "success"


def test_a_notification_is_cancelled_by_its_tool_use_id_too(
    sidecar: Connection, session: str, tmp_path: Path
) -> None:
    arguments = {"seconds": 600, "pid_file": str(tmp_path / "pid")}
    sidecar.notify(
        "tools/call", session_id=session, name="spawn", arguments=arguments, tool_use_id="quiet"
    )
    grandchild = pid_in(tmp_path / "pid")
    sidecar.notify("$/cancelRequest", tool_use_id="quiet")
    assert until(lambda: not alive(grandchild))
    assert [m for m in sidecar.settled() if "error" in m] == []


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"id": 99},
        {"id": "99"},
        {"id": None},
        {"tool_use_id": "nobody"},
        {"tool_use_id": None},
        {"id": []},
        {"tool_use_id": 5},
        {"unknown": 1},
    ],
)
def test_cancelling_what_is_not_there_changes_nothing(
    sidecar: Connection, session: str, params: dict[str, Any]
) -> None:
    call = sidecar.begin(
        "tools/call",
        session_id=session,
        name="wait",
        arguments={"seconds": 0.5},
        tool_use_id="use-wait",
    )
    sidecar.notify("$/cancelRequest", **params)
    assert sidecar.result(call)["status"] == "success"
    assert [m for m in sidecar.settled() if "error" in m] == []


def test_cancelling_twice_and_after_the_end_gives_one_reply(
    sidecar: Connection, session: str
) -> None:
    wait = {"session_id": session, "name": "wait", "arguments": {"seconds": 60}}
    call = sidecar.begin("tools/call", **wait, tool_use_id="use-wait")
    for _ in range(3):
        sidecar.notify("$/cancelRequest", id=call)
    assert _cancelled(sidecar, call)
    sidecar.notify("$/cancelRequest", id=call)
    assert [m for m in sidecar.settled() if m.get("id") == call and "error" not in m] == []


def test_a_call_without_effects_can_be_made_again_after_it_was_cancelled(
    sidecar: Connection, session: str
) -> None:
    wait = {"session_id": session, "name": "wait", "arguments": {"seconds": 1}}
    call = sidecar.begin("tools/call", **wait, tool_use_id="use-wait")
    sidecar.notify("$/cancelRequest", id=call)
    assert _cancelled(sidecar, call)
    again = sidecar.request("tools/call", **wait, tool_use_id="use-wait")
    assert again["status"] == "success"


def test_a_cancelled_call_with_effects_says_that_it_was_stopped_and_does_not_run_again(
    sidecar: Connection, session: str, tmp_path: Path
) -> None:
    tally = {
        "session_id": session,
        "name": "tally",
        "arguments": {"file": str(tmp_path / "runs"), "seconds": 600},
        "tool_use_id": "use-tally",
    }
    call = sidecar.begin("tools/call", **tally)
    assert until((tmp_path / "runs").exists)
    sidecar.notify("$/cancelRequest", id=call)
    assert _cancelled(sidecar, call)
    again = sidecar.request("tools/call", **tally)
    assert again["status"] == "error"
    assert "stopped" in again["message"]
    assert (tmp_path / "runs").read_text(encoding="utf-8") == "ran\n"


def test_cancelling_one_member_of_a_batch_answers_it_in_the_batch(
    sidecar: Connection, session: str
) -> None:
    wait = {"session_id": session, "name": "wait"}
    members = [
        request("tools/call", 1, **wait, arguments={"seconds": 600}, tool_use_id="long"),
        request("tools/call", 2, **wait, arguments={"seconds": 0.1}, tool_use_id="short"),
    ]
    sidecar.send(members)
    sidecar.notify("$/cancelRequest", id=1)
    replies = {reply["id"]: reply for reply in sidecar.next_message().value}
    assert replies[1]["error"]["code"] == -32800
    assert replies[2]["result"]["status"] == "success"


def test_a_time_limit_ends_the_child_and_grandchild(
    sidecar: Connection, session: str, tmp_path: Path
) -> None:
    call = _spawn(sidecar, session, tmp_path / "pid", timeout=0.5)
    grandchild = pid_in(tmp_path / "pid")
    assert sidecar.result(call)["status"] == "success"
    assert until(lambda: not alive(grandchild))
