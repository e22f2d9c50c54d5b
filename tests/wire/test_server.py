"""Tests of the serving process: concurrency, replies, defects, and unlucky clients."""

from __future__ import annotations

import json
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.connection import Connection, RpcError, framed, request
from tests.sidecar import Sidecar


def _wait(sidecar: Connection, session: str, seconds: float, use: str = "slow") -> int:
    return sidecar.begin(
        "tools/call",
        session_id=session,
        name="wait",
        arguments={"seconds": seconds},
        tool_use_id=use,
    )


def _misbehave(sidecar: Connection, session: str, how: str) -> Any:
    return sidecar.request(
        "tools/call",
        session_id=session,
        name="misbehave",
        arguments={"how": how},
        tool_use_id=f"use-{how}",
    )


def test_a_quick_request_is_answered_while_a_slow_one_runs(
    sidecar: Connection, session: str
) -> None:
    slow = _wait(sidecar, session, 600)
    for _ in range(5):
        assert sidecar.request("session/status", session_id=session)["session_id"] == session
    with sidecar._changed:
        assert not [m for m in sidecar.received if m.value.get("id") == slow]
    sidecar.notify("$/cancelRequest", id=slow)
    assert sidecar.reply(slow)["error"]["code"] == -32800


def test_more_slow_requests_than_threads_do_not_delay_a_quick_one(
    sidecar: Connection, session: str
) -> None:
    slow = [_wait(sidecar, session, 60, f"use-{number}") for number in range(40)]
    assert sidecar.request("ping") == "pong"
    for number in range(40):
        sidecar.notify("$/cancelRequest", tool_use_id=f"use-{number}")
    for request_id in slow:
        with pytest.raises(RpcError) as caught:
            sidecar.result(request_id)
        assert caught.value.code == -32800


def test_a_reply_leaves_in_the_framing_of_its_request(sidecar: Connection) -> None:
    for number, framing in enumerate(["line", "header", "header", "line", "header"]):
        sidecar.send(request("ping", number), framing)
        received = sidecar.next_message()
        assert (received.value["id"], received.framing) == (number, framing)


def test_progress_of_work_over_half_a_second_is_told_until_its_reply(
    sidecar: Connection, session: str
) -> None:
    slow = _wait(sidecar, session, 1.6)
    assert sidecar.result(slow)["status"] == "success"
    told = sidecar.notifications("$/progress")
    assert {params["token"] for params in told} == {slow}
    assert {params["tool_use_id"] for params in told} == {"slow"}
    assert told[0]["value"]["message"] == "waiting"
    assert (told[0]["value"]["done"], told[0]["value"]["total"]) == (0, 1)
    seconds = [0, *(params["value"]["seconds"] for params in told)]
    assert all(later - earlier >= 0.5 for earlier, later in pairwise(seconds))
    time.sleep(0.8)
    sidecar.request("ping")
    assert len(sidecar.notifications("$/progress")) == len(told)
    assert all("id" in reply for reply in sidecar.replies)


def test_work_of_less_than_half_a_second_tells_no_progress(
    sidecar: Connection, session: str
) -> None:
    for number in range(20):
        assert sidecar.result(_wait(sidecar, session, 0.01, f"use-{number}"))
    told = sidecar.notifications("$/progress")  # a busy machine may make any work long
    assert all(params["value"]["seconds"] >= 0.5 for params in told)


def test_a_notification_is_never_answered_whatever_it_is(sidecar: Connection, session: str) -> None:
    sidecar.notify("ping")
    sidecar.notify("no/such/method")
    sidecar.notify("session/status", session_id="nosuch")
    sidecar.notify("session/status", wrong=1)
    sidecar.notify("tools/call", session_id=session, name="misbehave", tool_use_id="n")
    sidecar.notify(
        "tools/call", session_id=session, name="wait", arguments={"seconds": 1}, tool_use_id="w"
    )
    sidecar.send([request("ping"), request("nothing"), request("ping")])
    time.sleep(0.7)
    assert [m for m in sidecar.settled() if "result" in m and m["result"] == "pong"] == []
    assert sidecar.notifications("$/progress") == []
    assert [m for m in sidecar.settled() if "error" in m] == []


def test_a_batch_gets_one_reply_with_one_member_for_each_request(
    sidecar: Connection, session: str
) -> None:
    slow = {"session_id": session, "name": "wait", "arguments": {"seconds": 0.3}}
    sidecar.send(
        [
            request("ping", 1),
            request("ping"),
            17,
            request("no/such/method", "two"),
            {"jsonrpc": "1.0", "method": "ping", "id": 3},
            request("tools/call", 4, **slow, tool_use_id="a"),
            request("session/status", 5, session_id=session),
            request("session/status", 6),
            request("initialize", 7),
            request("tools/call", **slow, tool_use_id="b"),
            {"jsonrpc": "2.0", "method": "ping", "id": {"no": "id"}},
            [],
        ]
    )
    replies = sidecar.next_message().value
    codes = {reply["id"]: reply.get("error", {}).get("code") for reply in replies if reply["id"]}
    assert codes == {1: None, "two": -32601, 3: -32600, 4: None, 5: None, 6: -32602, 7: None}
    assert [r["error"]["code"] for r in replies if r["id"] is None] == [-32600] * 3


def test_the_order_of_a_batch_does_not_hold_a_quick_request_back(
    sidecar: Connection, session: str
) -> None:
    slow = {"session_id": session, "name": "wait", "arguments": {"seconds": 60}}
    sidecar.send([request("tools/call", "slow", **slow, tool_use_id="a"), request("ping", 1)])
    assert sidecar.request("ping") == "pong"
    sidecar.notify("$/cancelRequest", tool_use_id="a")
    replies = sidecar.wait_for(lambda value: isinstance(value, list)).value
    assert {reply["id"] for reply in replies} == {"slow", 1}


def test_a_request_with_the_id_null_is_answered_with_it(sidecar: Connection) -> None:
    sidecar.send({"jsonrpc": "2.0", "method": "ping", "id": None})
    assert sidecar.next_message().value == {"jsonrpc": "2.0", "result": "pong", "id": None}


@pytest.mark.parametrize("request_id", ["a", "", 0, -1, 1.5, 10**30, "é\U0001f600", "x" * 10_000])
def test_an_id_comes_back_as_it_was(sidecar: Connection, request_id: Any) -> None:
    sidecar.send(request("ping", request_id))
    assert sidecar.reply(request_id)["result"] == "pong"


@pytest.mark.parametrize("request_id", [True, [], {}, [1]])
def test_what_cannot_be_an_id_is_refused_without_one(sidecar: Connection, request_id: Any) -> None:
    sidecar.send(request("ping", request_id))
    reply = sidecar.next_message().value
    assert (reply["error"]["code"], reply["id"]) == (-32600, None)


def test_an_id_that_is_in_use_is_refused_and_free_again_after_the_reply(
    sidecar: Connection, session: str
) -> None:
    slow = {"session_id": session, "name": "wait", "arguments": {"seconds": 60}}
    sidecar.send(request("tools/call", "same", **slow, tool_use_id="a"))
    sidecar.send(request("ping", "same"))
    assert sidecar.reply("same")["error"]["code"] == -32600
    sidecar.notify("$/cancelRequest", id="same")
    assert sidecar.reply("same")["error"]["code"] == -32800
    sidecar.send(request("ping", "same"))
    assert sidecar.reply("same")["result"] == "pong"


def test_a_text_and_a_number_are_different_ids(sidecar: Connection, session: str) -> None:
    slow = {"session_id": session, "name": "wait", "arguments": {"seconds": 60}}
    sidecar.send(request("tools/call", 5, **slow, tool_use_id="a"))
    sidecar.send(request("ping", "5"))
    assert sidecar.reply("5")["result"] == "pong"
    sidecar.notify("$/cancelRequest", id="5")
    sidecar.request("ping")
    sidecar.notify("$/cancelRequest", id=5)
    assert sidecar.reply(5)["error"]["code"] == -32800


def test_an_unknown_method_is_named_in_the_reply_and_cut_when_long(sidecar: Connection) -> None:
    sidecar.send(request("no/such/" + "x" * 1_000_000, 1))
    error = sidecar.reply(1)["error"]
    assert error["code"] == -32601
    assert "no/such/" in error["data"]["detail"]
    assert len(error["data"]["detail"]) < 200


@pytest.mark.parametrize("name", ["call", "self", "positional", "named", "", "a b", "session_id "])
def test_an_unknown_parameter_is_named_whatever_it_is_called(
    sidecar: Connection, name: str
) -> None:
    with pytest.raises(RpcError) as caught:
        sidecar.request("ping", **{name: 1})
    assert caught.value.code == -32602
    assert [field["field"] for field in caught.value.data["fields"]] == [name or "params"]


def test_a_missing_parameter_is_named(sidecar: Connection) -> None:
    with pytest.raises(RpcError) as caught:
        sidecar.request("session/status")
    assert caught.value.code == -32602
    assert caught.value.data["fields"][0]["field"] == "session_id"
    assert "session_id" in caught.value.told


@pytest.mark.parametrize("params", [None, [], {}])
def test_params_may_be_left_empty_in_every_way(sidecar: Connection, params: Any) -> None:
    sidecar.send({"jsonrpc": "2.0", "method": "ping", "id": 1, "params": params})
    assert sidecar.reply(1)["result"] == "pong"


@pytest.mark.parametrize("params", ["text", 5, True])
def test_params_that_are_no_structure_make_an_invalid_request(
    sidecar: Connection, params: Any
) -> None:
    sidecar.send({"jsonrpc": "2.0", "method": "ping", "id": 1, "params": params})
    assert sidecar.reply(1)["error"]["code"] == -32600


@pytest.mark.process
@pytest.mark.parametrize(
    "how", ["raise", "os error", "exit", "panic", "interrupt", "recurse", "nothing"]
)
def test_a_defect_is_a_reference_in_the_reply_and_a_traceback_in_the_log(
    sidecar: Connection, session: str, log_file: Path, how: str
) -> None:
    with pytest.raises(RpcError) as caught:
        _misbehave(sidecar, session, how)
    error = caught.value
    assert (error.code, error.message) == (-32603, "Internal error")
    assert "xyzzy" not in json.dumps(error.error)
    assert "Traceback" not in json.dumps(error.error)
    reference = error.data["reference"]
    assert reference in error.told
    logged = log_file.read_text(encoding="utf-8")
    assert log_file.stat().st_mode & 0o077 == 0
    assert "Traceback" in logged.partition(reference)[2]
    assert sidecar.request("ping") == "pong"


@pytest.mark.parametrize("how", ["nan", "set"])
def test_a_result_that_is_not_json_costs_its_own_reply_alone(
    sidecar: Connection, session: str, how: str
) -> None:
    params = {
        "session_id": session,
        "name": "misbehave",
        "arguments": {"how": how},
        "tool_use_id": how,
    }
    sidecar.send([request("ping", 1), request("tools/call", 2, **params), request("ping", 3)])
    replies = {reply["id"]: reply for reply in sidecar.next_message().value}
    assert (replies[1]["result"], replies[3]["result"]) == ("pong", "pong")
    assert "error" in replies[2] or replies[2]["result"]["status"] in ("success", "error")


def test_a_name_that_no_utf8_text_can_hold_reaches_the_client_as_valid_json(
    sidecar: Connection, session: str
) -> None:
    assert _misbehave(sidecar, session, "surrogate")["status"] == "success"


@pytest.mark.process
def test_a_thread_of_a_tool_that_dies_takes_nothing_with_it(
    sidecar: Connection, session: str
) -> None:
    assert _misbehave(sidecar, session, "thread")["status"] == "success"
    assert sidecar.request("ping") == "pong"


@pytest.mark.process
def test_stdout_carries_the_protocol_alone_even_when_a_tool_prints(
    sidecar: Sidecar, session: str
) -> None:
    assert _misbehave(sidecar, session, "print")["status"] == "success"
    assert sidecar.request("ping") == "pong"
    errors = sidecar.errors()
    for words in ("stray words", "more of them", "and from below", "from a child"):
        assert words in errors


def test_a_client_that_does_not_read_for_a_while_loses_nothing(
    tools_for_tests: Path, project: Path
) -> None:
    with Sidecar() as first:
        first.request("session/open", root=str(project), session_id="quiet")
    with Sidecar(reading=False) as sidecar:
        blob = {"session_id": "quiet", "name": "blob", "arguments": {"size": 300_000}}
        large = [
            sidecar.begin("tools/call", **blob, tool_use_id=f"blob-{number}") for number in range(5)
        ]
        quick = [sidecar.begin("ping") for _ in range(200)]
        time.sleep(1)
        sidecar.start_reading()
        assert all(sidecar.result(request_id)["status"] for request_id in large)
        assert all(sidecar.result(request_id) == "pong" for request_id in quick)


@pytest.mark.parametrize("framing", ["header", "line"])
def test_requests_and_replies_of_ten_megabytes_pass(
    sidecar: Connection, session: str, framing: str
) -> None:
    padding = "é" * 5_000_000
    sidecar.send(request("session/status", 1, session_id=padding), framing)
    assert sidecar.reply(1)["error"]["code"] == -32602
    blob = {"session_id": session, "name": "blob", "arguments": {"size": 10_000_000}}
    sidecar.send(request("tools/call", 2, **blob, tool_use_id="b"), framing)
    assert sidecar.result(2)["status"] == "success"


def test_a_message_over_the_limit_is_refused_and_the_next_one_answered(
    tools_for_tests: Path,
) -> None:
    with Sidecar(env={"EFRIT_BUDGET_WIRE__MAX_MESSAGE_BYTES": "100000"}) as sidecar:
        sidecar.request("ping")
        for framing in ("header", "line"):
            sidecar.send(request("ping", 1, padding="x" * 200_000), framing)
            refused = sidecar.next_message()
            assert refused.framing == framing
            assert refused.value["id"] is None
            assert refused.value["error"]["code"] == -32600
            assert refused.value["error"]["data"]["limit"] == 100_000
            assert "100,000" in refused.value["error"]["data"]["detail"]
            assert sidecar.request("ping") == "pong"


def test_many_requests_at_once_are_all_answered_once(sidecar: Connection) -> None:
    sidecar.send_bytes(b"".join(framed(request("ping", number)) for number in range(3000)))
    replies = [sidecar.next_message().value for _ in range(3000)]
    assert sorted(reply["id"] for reply in replies) == list(range(3000))
    assert sidecar.settled()[3000:] == []


def test_a_batch_of_thousands_is_answered_whole(sidecar: Connection) -> None:
    sidecar.send([request("ping", number) for number in range(5000)])
    replies = sidecar.next_message().value
    assert sorted(reply["id"] for reply in replies) == list(range(5000))


def test_a_person_may_pipe_a_line_into_it(tools_for_tests: Path) -> None:
    with Sidecar(framing="line") as sidecar:
        sidecar.send_bytes(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
        assert sidecar.finish() == 0
        assert [reply["result"] for reply in sidecar.replies] == ["pong"]
