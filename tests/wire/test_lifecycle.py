"""Tests of how a connection begins and ends, and of what the end leaves behind: nothing."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import sqlite3
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Any

import pytest

from tests.connection import TIMEOUT, RpcError, framed, request
from tests.processes import alive, pid_in, until
from tests.sidecar import SERVE, Sidecar

pytestmark = pytest.mark.process


def _spawn(sidecar: Sidecar, session: str, pid_file: Path) -> int:
    return sidecar.begin(
        "tools/call",
        session_id=session,
        name="spawn",
        arguments={"seconds": 600, "pid_file": str(pid_file)},
        tool_use_id="use-spawn",
    )


def _stubborn(sidecar: Sidecar, session: str) -> int:
    return sidecar.begin(
        "tools/call",
        session_id=session,
        name="misbehave",
        arguments={"how": "stubborn"},
        tool_use_id="use-stubborn",
    )


def _open_quiet_session(project: Path) -> None:
    with Sidecar() as sidecar:
        sidecar.request("session/open", root=str(project), session_id="quiet")


BLOB: dict[str, Any] = {"session_id": "quiet", "name": "blob", "arguments": {"size": 5_000_000}}
PIPE_BYTES = 60_000
"""The least number of bytes in a pipe that nobody reads."""


def _bytes_in(pipe: int) -> int:
    return int(struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0\0\0\0"))[0])


def _is_full(sidecar: Sidecar) -> bool:
    assert sidecar.process.stdout is not None
    return _bytes_in(sidecar.process.stdout.fileno()) >= PIPE_BYTES


# Beginning


def test_initialize_tells_versions_and_capabilities(sidecar: Sidecar) -> None:
    told = sidecar.request("initialize", client={"name": "test", "version": "1"})
    assert told["server"]["name"] == "efrit-budget"
    assert told["server"]["version"]
    assert isinstance(told["protocol_version"], int)
    assert told["capabilities"]["framings"] == ["header", "line"]
    sidecar.notify("initialized")
    assert sidecar.request("ping") == "pong"


def test_initialize_lets_the_members_of_other_clients_pass(sidecar: Sidecar) -> None:
    others = {"processId": 5, "rootUri": None, "capabilities": {}, "clientInfo": {"name": "x"}}
    assert sidecar.request("initialize", **others)["protocol_version"]


def test_initialize_is_answered_once(sidecar: Sidecar) -> None:
    sidecar.request("initialize")
    with pytest.raises(RpcError) as caught:
        sidecar.request("initialize")
    assert caught.value.code == -32600


def test_requests_are_answered_without_initialize(sidecar: Sidecar) -> None:
    assert sidecar.request("ping") == "pong"


# Shutdown and exit


def test_shutdown_then_exit_ends_with_code_zero(sidecar: Sidecar) -> None:
    sidecar.request("initialize")
    assert sidecar.request("shutdown") is None
    sidecar.notify("exit")
    assert sidecar.wait_exit() == 0


@pytest.mark.process(fresh=True)
def test_exit_without_shutdown_ends_with_code_one(sidecar: Sidecar) -> None:
    sidecar.request("initialize")
    sidecar.notify("exit")
    assert sidecar.wait_exit() == 1


def test_after_shutdown_requests_are_refused_and_work_can_still_be_cancelled(
    sidecar: Sidecar, session: str
) -> None:
    wait = {"session_id": session, "name": "wait", "arguments": {"seconds": 600}}
    call = sidecar.begin("tools/call", **wait, tool_use_id="w")
    sidecar.request("shutdown")
    for method in ("ping", "initialize", "shutdown", "session/list", "no/such/method"):
        with pytest.raises(RpcError) as caught:
            sidecar.request(method)
        assert caught.value.code == -32600
    sidecar.notify("$/cancelRequest", id=call)
    assert sidecar.reply(call)["error"]["code"] == -32800
    sidecar.notify("exit")
    assert sidecar.wait_exit() == 0


@pytest.mark.process(fresh=True)
@pytest.mark.parametrize("shutdown", [True, False])
def test_exit_stops_the_work_in_hand_and_answers_it(
    sidecar: Sidecar, session: str, tmp_path: Path, *, shutdown: bool
) -> None:
    call = _spawn(sidecar, session, tmp_path / "pid")
    grandchild = pid_in(tmp_path / "pid")
    if shutdown:
        sidecar.request("shutdown")
    sidecar.notify("exit")
    assert sidecar.wait_exit() == (0 if shutdown else 1)
    assert sidecar.reply(call)["error"]["code"] == -32800
    assert until(lambda: not alive(grandchild))


def test_what_follows_exit_is_not_looked_at(sidecar: Sidecar) -> None:
    sidecar.send_bytes(framed(request("exit")) + framed(request("ping", 1)) + b"garbage\n")
    assert sidecar.wait_exit() == 1
    assert sidecar.replies == []


# The end of the input


@pytest.mark.process(fresh=True)
def test_the_end_of_the_input_ends_the_process_and_its_children(
    sidecar: Sidecar, session: str, tmp_path: Path
) -> None:
    call = _spawn(sidecar, session, tmp_path / "pid")
    grandchild = pid_in(tmp_path / "pid")
    sidecar.close_stdin()
    assert sidecar.wait_exit() == 0
    assert not alive(grandchild)
    assert sidecar.reply(call)["error"]["code"] == -32800


@pytest.mark.process(fresh=True)
def test_the_end_of_the_input_ends_work_that_does_not_listen(
    sidecar: Sidecar, session: str
) -> None:
    _stubborn(sidecar, session)
    sidecar.request("ping")
    sidecar.close_stdin()
    assert sidecar.wait_exit() == 0


def test_quick_requests_in_hand_are_answered_after_the_end_of_the_input(
    sidecar: Sidecar, session: str
) -> None:
    sidecar.send_bytes(
        b"".join(
            framed(request("session/status", number, session_id=session)) for number in range(100)
        )
    )
    assert sidecar.finish() == 0
    assert max(reply["id"] for reply in sidecar.replies) == 99
    assert len([reply for reply in sidecar.replies if "result" in reply]) == 101


def test_a_long_file_of_requests_is_answered_whole(tools_for_tests: Path) -> None:
    with Sidecar() as sidecar:
        sidecar.send_bytes(b"".join(framed(request("ping", i), "line") for i in range(5000)))
        assert sidecar.finish() == 0
        assert len(sidecar.replies) == 5000


@pytest.mark.parametrize("rest", [b"", b"Content-Len", b"Content-Length: 5000\r\n\r\n{", b'{"a'])
def test_a_stream_that_ends_anywhere_ends_the_process_cleanly(
    tools_for_tests: Path, rest: bytes
) -> None:
    with Sidecar() as sidecar:
        sidecar.send(request("ping", 1))
        sidecar.send_bytes(rest)
        assert sidecar.finish() == 0
        assert "pong" in [reply.get("result") for reply in sidecar.replies]
        assert len(sidecar.replies) == (2 if rest else 1)
        assert "Traceback" not in sidecar.errors()


def test_the_end_of_the_input_ends_a_process_whose_output_nobody_reads(
    tools_for_tests: Path, project: Path
) -> None:
    _open_quiet_session(project)
    with Sidecar(command=SERVE, reading=False) as sidecar:
        for number in range(30):
            sidecar.begin("tools/call", **BLOB, tool_use_id=f"blob-{number}")
        sidecar.send_bytes(b"garbage\n" * 1000)
        assert until(lambda: _is_full(sidecar))
        sidecar.close_stdin()
        assert sidecar.process.wait(TIMEOUT) == 0


def test_an_output_that_is_closed_does_not_disturb_the_work(
    tools_for_tests: Path, project: Path, tmp_path: Path
) -> None:
    _open_quiet_session(project)
    runs = tmp_path / "runs"
    tally = {"session_id": "quiet", "name": "tally", "arguments": {"file": str(runs)}}
    with Sidecar(reading=False) as sidecar:
        assert sidecar.process.stdout is not None
        sidecar.process.stdout.close()
        sidecar.send_bytes(b"garbage\n")
        for number in range(3):
            sidecar.begin("tools/call", **tally, tool_use_id=f"use-{number}")
        assert until(lambda: runs.exists() and runs.read_text(encoding="utf-8") == "ran\n" * 3)
        assert sidecar.finish() == 0


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_that_are_closed_from_the_beginning_end_it_at_once(
    tools_for_tests: Path, closed: str
) -> None:
    line = json.dumps(request("ping", 1))
    script = f'"$@" {closed}'
    command = ["sh", "-c", script, "sh", sys.executable, "-m", "efrit_budget", "serve"]
    done = subprocess.run(
        command, input=line.encode(), capture_output=True, timeout=TIMEOUT, check=False, cwd="/"
    )
    if closed == "2>&-":
        assert done.returncode == 0
        assert json.loads(done.stdout)["result"] == "pong"
    else:
        assert done.returncode == 1
        assert done.stdout == b""
    assert b"Traceback" not in done.stderr


def test_input_from_a_file_and_output_to_a_file_are_served(
    tools_for_tests: Path, tmp_path: Path
) -> None:
    requests = tmp_path / "requests"
    requests.write_bytes(framed(request("ping", 1), "line"))
    with requests.open("rb") as source, (tmp_path / "replies").open("wb") as target:
        command = [sys.executable, "-m", "efrit_budget", "serve"]
        subprocess.run(command, stdin=source, stdout=target, timeout=TIMEOUT, check=True, cwd="/")
    assert json.loads((tmp_path / "replies").read_bytes())["result"] == "pong"


def test_pipes_that_are_set_to_not_block_are_served_all_the_same(
    tools_for_tests: Path, project: Path
) -> None:
    _open_quiet_session(project)
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    command = [sys.executable, "-m", "efrit_budget", "serve"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=write_end, cwd="/") as process:
        os.close(write_end)
        assert process.stdin is not None
        os.set_blocking(process.stdin.fileno(), False)
        process.stdin.write(framed(request("tools/call", 2, **BLOB, tool_use_id="b"), "line"))
        process.stdin.flush()
        with os.fdopen(read_end, "rb") as output:
            assert until(lambda: _bytes_in(output.fileno()) >= PIPE_BYTES)
            while "result" not in (reply := json.loads(output.readline())):
                assert reply["method"] == "$/progress"
            assert reply["result"]["status"] == "success"
            process.stdin.close()
            assert process.wait(TIMEOUT) == 0


# The end of the parent


@pytest.mark.parametrize("busy", ["idle", "spawn", "stubborn"])
def test_the_death_of_the_parent_ends_the_process_though_its_pipes_stay_open(
    tools_for_tests: Path, project: Path, tmp_path: Path, busy: str
) -> None:
    pid_file = tmp_path / "sidecar"
    script = str(Path(__file__).with_name("parent.py"))
    serve = [sys.executable, "-m", "efrit_budget", "serve"]
    with Sidecar(command=[sys.executable, script, str(pid_file), *serve]) as parent:
        pid = pid_in(pid_file)
        session = parent.request("session/open", root=str(project))["session_id"]
        grandchild = _busy(parent, session, busy, tmp_path)
        assert alive(pid)
        parent.process.kill()
        assert until(lambda: not alive(pid))
        assert grandchild is None or not alive(grandchild)


def _busy(sidecar: Sidecar, session: str, busy: str, folder: Path) -> int | None:
    if busy == "spawn":
        _spawn(sidecar, session, folder / "pid")
        return pid_in(folder / "pid")
    if busy == "stubborn":
        _stubborn(sidecar, session)
    return None


def test_the_death_of_the_parent_ends_a_process_that_is_stuck_in_its_output(
    tools_for_tests: Path, project: Path, tmp_path: Path
) -> None:
    pid_file = tmp_path / "sidecar"
    script = str(Path(__file__).with_name("parent.py"))
    serve = [sys.executable, "-m", "efrit_budget", "serve"]
    _open_quiet_session(project)
    with Sidecar(command=[sys.executable, script, str(pid_file), *serve], reading=False) as parent:
        pid = pid_in(pid_file)
        wait = {"session_id": "quiet", "name": "wait", "arguments": {"seconds": 60}}
        parent.begin("tools/call", **wait, tool_use_id="w")
        parent.begin("tools/call", **BLOB, tool_use_id="b")
        parent.send_bytes(b"garbage\n" * 1000)
        assert until(lambda: _is_full(parent))
        parent.process.kill()
        assert until(lambda: not alive(pid))


# Signals


@pytest.mark.process(fresh=True)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_with_its_children_and_an_answer_to_what_ran(
    sidecar: Sidecar, session: str, tmp_path: Path, number: signal.Signals
) -> None:
    call = _spawn(sidecar, session, tmp_path / "pid")
    grandchild = pid_in(tmp_path / "pid")
    sidecar.process.send_signal(number)
    assert sidecar.wait_exit() == 0
    assert not alive(grandchild)
    assert sidecar.reply(call)["error"]["code"] == -32800


def test_a_signal_lets_a_large_reply_that_is_half_written_come_whole(
    tools_for_tests: Path, project: Path
) -> None:
    _open_quiet_session(project)
    with Sidecar(reading=False) as sidecar:
        call = sidecar.begin("tools/call", **BLOB, tool_use_id="b")
        assert until(lambda: _is_full(sidecar))
        sidecar.process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        sidecar.start_reading()
        assert sidecar.result(call)["status"] == "success"
        assert sidecar.wait_exit() == 0


def test_a_signal_ends_a_process_that_is_stuck_in_its_output(
    tools_for_tests: Path,
) -> None:
    with Sidecar(command=SERVE, reading=False) as sidecar:
        sidecar.send_bytes(b"garbage\n" * 2000)
        assert until(lambda: _is_full(sidecar))
        sidecar.process.send_signal(signal.SIGTERM)
        assert sidecar.process.wait(TIMEOUT) == 0


@pytest.mark.process(fresh=True)
def test_a_signal_in_the_middle_of_many_writes_leaves_the_database_whole(
    sidecar: Sidecar, project: Path, home: Path
) -> None:
    opened: list[Any] = [
        sidecar.begin("session/open", root=str(project), session_id=f"s{number}")
        for number in range(200)
    ]
    sidecar.result(opened[20])
    sidecar.process.send_signal(signal.SIGTERM)
    assert sidecar.wait_exit() == 0
    answered = [m.value for m in sidecar.received if "result" in m.value]
    database = sqlite3.connect(home / "efrit" / "state" / "efrit-budget.sqlite3")
    try:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        kept = {row[0] for row in database.execute("SELECT id FROM sessions")}
    finally:
        database.close()
    assert {reply["result"]["session_id"] for reply in answered} <= kept
