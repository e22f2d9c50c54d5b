"""Tests of `tools/call`: one outcome for each use, even if a process dies meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from efrit_budget.wire.server import SLOW_THREADS
from tests.connection import Connection, RpcError
from tests.local_sidecar import LocalSidecar
from tests.processes import until
from tests.sidecar import Sidecar


def _call(session: str, name: str, use: str, **arguments: Any) -> dict[str, Any]:
    return {"session_id": session, "name": name, "arguments": arguments, "tool_use_id": use}


def _tally(session: str, file: Path, use: str = "use", **arguments: Any) -> dict[str, Any]:
    return _call(session, "tally", use, file=str(file), **arguments)


def _runs(file: Path) -> int:
    return file.read_text(encoding="utf-8").count("ran\n") if file.exists() else 0


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """The file in which `tally` counts its runs."""
    return tmp_path / "runs"


# Asked for again


def test_a_call_that_is_repeated_gives_the_same_envelope_and_runs_once(
    sidecar: Connection, session: str, runs: Path
) -> None:
    first = sidecar.request("tools/call", **_tally(session, runs))
    assert first["status"] == "success"
    assert sidecar.request("tools/call", **_tally(session, runs)) == first
    assert _runs(runs) == 1


def test_a_call_that_is_repeated_in_another_sidecar_gives_the_same_envelope(
    sidecar: Connection, session: str, runs: Path
) -> None:
    first = sidecar.request("tools/call", **_tally(session, runs))
    with LocalSidecar() as other:
        assert other.request("tools/call", **_tally(session, runs)) == first
    assert _runs(runs) == 1


def test_the_order_of_the_arguments_makes_no_other_call(
    sidecar: Connection, session: str, runs: Path
) -> None:
    use = {"session_id": session, "name": "tally", "tool_use_id": "use"}
    one = {"file": str(runs), "fail": False}
    other = {"fail": False, "file": str(runs)}
    first = sidecar.request("tools/call", **use, arguments=one)
    assert sidecar.request("tools/call", **use, arguments=other) == first


def test_data_may_be_left_out_of_either_reply(
    sidecar: Connection, session: str, runs: Path
) -> None:
    lean = sidecar.request("tools/call", **_tally(session, runs), include_data=False)
    whole = sidecar.request("tools/call", **_tally(session, runs))
    assert "data" not in lean
    assert whole.pop("data") == {} or "data" not in whole
    assert lean == whole


@pytest.mark.parametrize(
    "change", [{"name": "wait", "arguments": {"seconds": 0}}, {"arguments": {"file": "other"}}]
)
def test_another_call_under_the_same_id_is_refused(
    sidecar: Connection, session: str, runs: Path, change: dict[str, Any]
) -> None:
    sidecar.request("tools/call", **_tally(session, runs))
    with pytest.raises(RpcError) as caught:
        sidecar.request("tools/call", **{**_tally(session, runs), **change})
    assert caught.value.code == -32005
    assert "'use'" in caught.value.message
    assert _runs(runs) == 1


def test_the_same_id_in_another_session_is_another_call(
    sidecar: Connection, session: str, project: Path, runs: Path
) -> None:
    other = sidecar.request("session/open", root=str(project))["session_id"]
    sidecar.request("tools/call", **_tally(session, runs))
    sidecar.request("tools/call", **_tally(other, runs))
    assert _runs(runs) == 2


def test_the_same_call_at_the_same_time_runs_once_and_both_get_its_result(
    sidecar: Connection, session: str, runs: Path
) -> None:
    calls = [sidecar.begin("tools/call", **_tally(session, runs, seconds=0.7)) for _ in range(5)]
    first, *others = [sidecar.result(call) for call in calls]
    assert first["status"] == "success"
    assert all(other == first for other in others)
    assert _runs(runs) == 1


def test_the_same_call_at_the_same_time_in_two_sidecars_runs_once(
    sidecar: Connection, session: str, runs: Path
) -> None:
    with LocalSidecar() as other:
        other.request("ping")
        mine = sidecar.begin("tools/call", **_tally(session, runs, seconds=1))
        assert until(runs.exists)
        theirs = other.begin("tools/call", **_tally(session, runs, seconds=1))
        assert sidecar.result(mine) == other.result(theirs)
    assert _runs(runs) == 1


def test_a_call_that_waits_for_the_same_call_can_be_cancelled_alone(
    sidecar: Connection, session: str, runs: Path
) -> None:
    running = sidecar.begin("tools/call", **_tally(session, runs, seconds=1.5))
    assert until(runs.exists)
    waiting = sidecar.begin("tools/call", **_tally(session, runs, seconds=1.5))
    sidecar.notify("$/cancelRequest", id=waiting)
    assert sidecar.reply(waiting)["error"]["code"] == -32800
    assert sidecar.result(running)["status"] == "success"


# Deaths


@pytest.mark.process
def test_a_call_whose_sidecar_was_killed_says_so_and_does_not_run_again(
    sidecar: Sidecar, session: str, runs: Path
) -> None:
    sidecar.begin("tools/call", **_tally(session, runs, die=True))
    sidecar.wait_exit()
    with LocalSidecar() as other:
        told = other.request("tools/call", **_tally(session, runs, die=True))
        assert told["status"] == "error"
        assert "nobody saw it end" in told["message"]
        assert other.request("tools/call", **_tally(session, runs, die=True)) == told
        fresh = other.request("tools/call", **_tally(session, runs, use="another"))
        assert fresh["status"] == "success"
    assert _runs(runs) == 2


@pytest.mark.process
def test_a_call_that_waits_for_one_in_another_sidecar_learns_of_its_death(
    sidecar: Sidecar, session: str, runs: Path
) -> None:
    sidecar.begin("tools/call", **_tally(session, runs, seconds=600))
    assert until(runs.exists)
    with LocalSidecar() as other:
        waiting = other.begin("tools/call", **_tally(session, runs, seconds=600))
        other.request("ping")
        sidecar.kill()
        told = other.result(waiting)
        assert told["status"] == "error"
        assert "nobody saw it end" in told["message"]
    assert _runs(runs) == 1


@pytest.mark.process
def test_a_call_without_effects_is_made_again_after_a_kill(sidecar: Sidecar, session: str) -> None:
    call = _call(session, "wait", "use", seconds=0.2)
    sidecar.begin("tools/call", **_call(session, "wait", "use", seconds=0.2))
    sidecar.kill()
    with LocalSidecar() as other:
        assert other.request("tools/call", **call)["status"] == "success"


def test_a_tool_with_effects_that_raised_is_told_and_does_not_run_again(
    sidecar: Connection, session: str, runs: Path
) -> None:
    with pytest.raises(RpcError) as caught:
        sidecar.request("tools/call", **_tally(session, runs, fail=True))
    assert caught.value.code == -32603
    again = sidecar.request("tools/call", **_tally(session, runs, fail=True))
    assert again["status"] == "error"
    assert "xyzzy" not in str(again)
    assert _runs(runs) == 1


# Questions


def test_a_tool_that_asks_runs_once_the_person_has_agreed(
    sidecar: Connection, session: str, runs: Path
) -> None:
    call = _call(session, "asks", "use", file=str(runs))
    asked = sidecar.request("tools/call", **call)
    assert asked["status"] == "needs_confirmation"
    assert asked["confirm"]["question"] == f"Write into {runs}?"
    assert _runs(runs) == 0
    agreed = sidecar.request("tools/call", **call, confirm_id=asked["confirm"]["id"])
    assert agreed["status"] == "success"
    assert _runs(runs) == 1
    assert sidecar.request("tools/call", **call) == agreed
    assert _runs(runs) == 1


def test_a_question_is_asked_as_often_as_the_call_is_made(
    sidecar: Connection, session: str, runs: Path
) -> None:
    call = _call(session, "asks", "use", file=str(runs))
    asked = [sidecar.request("tools/call", **call) for _ in range(3)]
    assert {envelope["status"] for envelope in asked} == {"needs_confirmation"}
    assert sidecar.request("session/status", session_id=session)
    assert _runs(runs) == 0


@pytest.mark.parametrize("confirm_id", ["", "yes", "0" * 16, "é\U0001f600"])
def test_an_agreement_that_was_never_given_is_none(
    sidecar: Connection, session: str, runs: Path, confirm_id: str
) -> None:
    call = _call(session, "asks", "use", file=str(runs))
    asked = sidecar.request("tools/call", **call, confirm_id=confirm_id)
    assert asked["status"] == "needs_confirmation"
    assert _runs(runs) == 0


def test_an_agreement_holds_for_its_own_call_alone(
    sidecar: Connection, session: str, runs: Path, tmp_path: Path
) -> None:
    call = _call(session, "asks", "use", file=str(runs))
    agreement = sidecar.request("tools/call", **call)["confirm"]["id"]
    for other in (
        _call(session, "asks", "use-2", file=str(runs)),
        _call(session, "asks", "use", file=str(tmp_path / "other")),
    ):
        asked = sidecar.request("tools/call", **other, confirm_id=agreement)
        assert asked["status"] == "needs_confirmation"
    assert _runs(runs) == 0


def test_the_model_cannot_agree_in_its_own_arguments(
    sidecar: Connection, session: str, runs: Path
) -> None:
    call = _call(session, "asks", "use", file=str(runs))
    agreement = sidecar.request("tools/call", **call)["confirm"]["id"]
    forged = _call(session, "asks", "use-2", file=str(runs), confirm_id=agreement, confirmed=True)
    assert sidecar.request("tools/call", **forged)["status"] == "error"
    assert _runs(runs) == 0


# Wrong calls


def test_an_unknown_tool_is_an_error_that_names_those_there_are(
    sidecar: Connection, session: str
) -> None:
    with pytest.raises(RpcError) as caught:
        sidecar.request("tools/call", **_call(session, "file_infos", "use"))
    assert caught.value.code == -32004
    assert "file_info" in caught.value.message


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("session_id", ""),
        ("session_id", None),
        ("session_id", "x" * 65),
        ("name", ""),
        ("name", 5),
        ("arguments", "text"),
        ("arguments", [1]),
        ("tool_use_id", ""),
        ("tool_use_id", "x" * 201),
        ("tool_use_id", 5),
        ("include_data", "perhaps"),
        ("unknown", 1),
    ],
)
def test_a_call_that_does_not_fit_names_the_field(
    sidecar: Connection, session: str, field: str, value: Any
) -> None:
    with pytest.raises(RpcError) as caught:
        sidecar.request("tools/call", **{**_call(session, "wait", "use", seconds=0), field: value})
    assert caught.value.code == -32602
    assert caught.value.data["fields"][0]["field"] == field


def test_a_call_in_no_session_or_a_closed_one_is_refused(sidecar: Connection, session: str) -> None:
    with pytest.raises(RpcError) as caught:
        sidecar.request("tools/call", **_call("nosuch", "wait", "use", seconds=0))
    assert caught.value.code == -32001
    sidecar.request("session/close", session_id=session)
    with pytest.raises(RpcError) as caught:
        sidecar.request("tools/call", **_call(session, "wait", "use", seconds=0))
    assert caught.value.code == -32002
    assert "session/resume" in caught.value.message


def test_a_session_that_is_deleted_while_a_tool_runs_is_told_as_gone(
    sidecar: Connection, session: str, runs: Path
) -> None:
    call = sidecar.begin("tools/call", **_tally(session, runs, seconds=0.7))
    assert until(runs.exists)
    sidecar.request("session/delete", session_id=session)
    reply = sidecar.reply(call)
    assert reply["error"]["code"] == -32001


def test_odd_arguments_and_ids_come_through(sidecar: Connection, session: str, runs: Path) -> None:
    for use in ("toolu_01é", "\U0001f600", "'; DROP TABLE calls; --", "a\0b", " "):
        assert sidecar.request("tools/call", **_tally(session, runs, use=use))["status"]
    assert _runs(runs) == 5


def test_a_call_that_waits_for_its_turn_can_be_stopped(sidecar: Connection, session: str) -> None:
    def wait(number: int) -> dict[str, Any]:
        use = {"session_id": session, "tool_use_id": f"use-{number}", "name": "wait"}
        return use | {"arguments": {"seconds": 600}}

    def stop(number: int) -> bool:
        use = {"session_id": session, "tool_use_id": f"use-{number}"}
        return bool(sidecar.request("tools/stop", **use)["stopped"])

    calls = [sidecar.begin("tools/call", **wait(number)) for number in range(SLOW_THREADS + 1)]
    assert stop(SLOW_THREADS)
    for number in range(SLOW_THREADS):
        assert stop(number)
    for call in calls:
        envelope = sidecar.result(call)
        assert (envelope["status"], envelope["message"]) == ("error", "stopped by the person")
    assert not stop(SLOW_THREADS)
