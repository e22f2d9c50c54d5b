"""Tests of `run_command`, through a real sidecar."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.connection import Connection, RpcError
from tests.processes import alive, pid_in, until
from tests.sidecar import Sidecar

Run = Callable[..., dict[str, Any]]


def _call(session: str, use: str, **arguments: Any) -> dict[str, Any]:
    return {
        "session_id": session,
        "name": "run_command",
        "arguments": arguments,
        "tool_use_id": use,
    }


@pytest.fixture
def run(sidecar: Connection, session: str) -> Run:
    """Run a command to which the person agrees."""
    uses = iter(range(1000))

    def agreed(command: str, **arguments: Any) -> dict[str, Any]:
        call = _call(session, f"use-{next(uses)}", command=command, **arguments)
        asked = sidecar.request("tools/call", **call)
        assert asked["status"] == "needs_confirmation", asked
        found: dict[str, Any] = sidecar.request(
            "tools/call", **call, confirm_id=asked["confirm"]["id"]
        )
        return found

    return agreed


def _running(sidecar: Connection, session: str, command: str) -> tuple[dict[str, Any], int]:
    """Start a command that the person allows; return the call and the request, still running."""
    call = _call(session, "use", command=command)
    asked = sidecar.request("tools/call", **call)
    return call, sidecar.begin("tools/call", **call, confirm_id=asked["confirm"]["id"])


def _more(sidecar: Connection, session: str, token: str, use: str) -> dict[str, Any]:
    found: dict[str, Any] = sidecar.request(
        "tools/call", **_call(session, use, continuation_token=token)
    )
    return found


# Asking


def test_nothing_runs_before_the_person_agrees_and_then_it_runs_once(
    sidecar: Connection, session: str, project: Path
) -> None:
    call = _call(session, "use", command="echo ran >> runs")
    asked = sidecar.request("tools/call", **call)
    assert asked["status"] == "needs_confirmation"
    assert asked["confirm"]["question"] == f"Run in {project}:\necho ran >> runs"
    assert not (project / "runs").exists()
    agreed = sidecar.request("tools/call", **call, confirm_id=asked["confirm"]["id"])
    assert agreed["status"] == "success"
    assert sidecar.request("tools/call", **call) == agreed
    assert (project / "runs").read_text(encoding="utf-8") == "ran\n"


def test_the_question_hides_no_part_of_the_command(sidecar: Connection, session: str) -> None:
    command = "echo a\necho b\r\x1b[2K\u202egnp.exe\u200b"
    asked = sidecar.request("tools/call", **_call(session, "use", command=command))
    told = asked["confirm"]["question"].partition(":\n")[2]
    assert told == r"echo a" + "\n" + r"echo b\u000d\u001b[2K\u202egnp.exe\u200b"


def test_every_session_is_told_that_the_command_asks(sidecar: Connection) -> None:
    listed = {tool["name"]: tool for tool in sidecar.request("tools/list")["tools"]}
    assert listed["run_command"]["policy"] == "ask"


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"command": ""}, "command"),
    ({"command": "a\0b"}, "NUL"),
    ({"command": "true", "timeout": 0}, "timeout"),
    ({"command": "true", "timeout": 3601}, "timeout"),
    ({"command": "true", "cwd": "gone"}, "cwd gone: No such file or directory"),
    ({"command": "true", "cwd": "file"}, "cwd file is not a folder"),
    ({"command": "true", "cwd": ".."}, "outside the project"),
    ({"command": "true", "cwd": "out"}, "outside the project"),
    ({"command": "true", "shell": "x"}, "shell"),
]


def test_what_cannot_be_run_is_told_before_anybody_is_asked(
    sidecar: Connection, session: str, project: Path, tmp_path: Path
) -> None:
    (project / "file").touch()
    (project / "out").symlink_to(tmp_path)
    for number, (arguments, told) in enumerate(WRONG):
        envelope = sidecar.request("tools/call", **_call(session, f"use-{number}", **arguments))
        assert envelope["status"] == "error"
        assert told in envelope["message"]


# What it gives


def test_output_comes_in_order_with_the_exit_code_and_the_time(run: Run) -> None:
    envelope = run("echo one; echo two >&2; echo three; exit 3")
    assert envelope["status"] == "success"
    assert envelope["text"].startswith("§ exit 3\none\ntwo\nthree\n§ Took ")
    assert envelope["data"]["exit_code"] == 3
    assert envelope["data"]["seconds"] >= 0
    assert (envelope["data"]["signal"], envelope["data"]["timed_out"]) == (None, False)


def test_a_silent_command_and_one_ended_by_a_signal_are_told(run: Run) -> None:
    assert run("true")["text"].startswith("§ exit 0, no output\n§ Took ")
    killed = run("kill -9 $$")
    assert killed["text"].startswith("§ ended by SIGKILL, no output\n")
    assert killed["data"]["signal"] == "SIGKILL"


def test_a_command_runs_in_the_root_or_in_its_folder(run: Run, project: Path) -> None:
    (project / "in side").mkdir()
    assert f"\n{project}\n" in run("pwd -P")["text"]
    assert f"\n{project}/in side\n" in run("pwd -P", cwd="in side")["text"]


def test_no_terminal_no_input_and_no_pager_wait(run: Run) -> None:
    text = run('cat; test -t 0 || echo none; echo "$PAGER $GIT_PAGER $TERM"; git commit; exit 0')[
        "text"
    ]
    assert "none\ncat cat dumb\n" in text


def test_keys_are_kept_from_a_command(
    tools_for_tests: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "hidden-1")
    monkeypatch.setenv("SOME_TOKEN", "hidden-2")
    monkeypatch.setenv("HARMLESS", "shown")
    with Sidecar() as sidecar:
        session = sidecar.request("session/open", root=str(project))["session_id"]
        call = _call(session, "use", command="env")
        asked = sidecar.request("tools/call", **call)
        text = sidecar.request("tools/call", **call, confirm_id=asked["confirm"]["id"])["text"]
    assert "HARMLESS=shown" in text
    assert "hidden" not in text


def test_colours_and_progress_bars_are_not_shown(run: Run) -> None:
    text = run(r"printf '\033[31mred\033[0m\n 10%%\r 99%%\r100%%\nnul \000 \377\n'")["text"]
    assert "\nred\n 10%␍… 1 like it …␍100%\nnul  \ufffd\n" in text


def test_long_output_shows_its_beginning_and_its_end_and_all_of_it_is_stored(
    run: Run, sidecar: Connection, session: str
) -> None:
    envelope = run("seq 1 10000; echo the end")
    text = envelope["text"]
    assert envelope["tokens"] <= 8000
    assert text.startswith("§ exit 0\n1\n2\n3\n")
    assert "\n§ … the end, from line " in text
    assert "\n9999\n10000\nthe end\n§ Took " in text
    assert "of 10,002 lines. continuation_token" in text
    first = text.partition("\n§ … the end")[0].split("\n")
    numbers = [int(line) for line in first[1:]]
    uses = iter(range(1000))
    while (token := envelope["data"].get("continuation_token")) is not None:
        envelope = _more(sidecar, session, token, f"more-{next(uses)}")
        assert "… the end" not in envelope["text"]
        numbers += [int(line) for line in envelope["text"].split("\n") if line.isdigit()]
    assert numbers == list(range(1, 10_001))


def test_beginning_and_end_stay_within_any_allowance(run: Run) -> None:
    scripts = (
        "seq 1 3000",
        "head -c 100000 /dev/zero | tr '\\0' x",
        "seq 1 300 | tr '\\n' ' '",
        "yes 漢字 | head -n 900",
    )
    for script, most in product(scripts, (50, 80, 120, 200, 500, 2000)):
        envelope = run(script, max_tokens=most)
        assert envelope["tokens"] <= most
        assert envelope["handle"]


def test_the_end_of_one_enormous_line_is_shown_too(run: Run) -> None:
    text = run("seq 1 30000 | tr '\\n' ' '", max_tokens=1000)["text"]
    assert "\n§ … the end, from line 2 on:\n…" in text
    assert "30000 \n§ Took" in text


def test_a_flood_of_output_is_cut_in_its_middle_and_says_so(run: Run) -> None:
    envelope = run("head -c 40000000 /dev/zero | tr '\\0' '\\n'; echo the end", max_tokens=300)
    assert envelope["data"]["bytes"] == 40_000_008
    assert envelope["data"]["dropped_bytes"] > 20_000_000
    assert "the end\n" in envelope["text"]


# Ending


def test_a_command_that_takes_too_long_is_ended_with_all_it_started(
    run: Run, project: Path
) -> None:
    envelope = run("echo early; sleep 600 & echo $! > pid; wait", timeout=1)
    assert envelope["status"] == "error"
    assert envelope["message"] == "ended after 1 second, the time limit; raise timeout"
    assert envelope["text"].startswith("§ ended after 1 second, the time limit\nearly\n")
    assert envelope["data"]["timed_out"] is True
    assert until(lambda: not alive(pid_in(project / "pid")))


def test_what_a_command_leaves_running_is_ended_and_told(run: Run, project: Path) -> None:
    envelope = run("sleep 600 > out 2>&1 & echo $! > pid; echo started")
    assert envelope["status"] == "success"
    assert "What it left running was ended." in envelope["text"]
    assert envelope["data"]["left_running"] is True
    assert until(lambda: not alive(pid_in(project / "pid")))
    assert "left running" not in run("echo a; sleep 0.01 & wait")["text"]


def test_a_cancelled_command_is_ended_with_all_it_started_and_never_run_again(
    sidecar: Connection, session: str, project: Path
) -> None:
    command = "sleep 600 & echo $! > new; mv new pid; wait; sleep 600"
    call = _call(session, "use", command=command)
    asked = sidecar.request("tools/call", **call)
    running = sidecar.begin("tools/call", **call, confirm_id=asked["confirm"]["id"])
    pid = pid_in(project / "pid")
    sidecar.notify("$/cancelRequest", id=running)
    with pytest.raises(RpcError) as caught:
        sidecar.result(running)
    assert caught.value.code == -32800
    assert until(lambda: not alive(pid))
    (project / "pid").unlink()
    again = sidecar.request("tools/call", **call)
    assert again["status"] == "error"
    assert again["data"]["interrupted"] is True
    assert not (project / "pid").exists()


def test_what_a_cancelled_command_wrote_is_kept(
    sidecar: Connection, session: str, project: Path
) -> None:
    call, running = _running(sidecar, session, "seq 1 3000; echo $$ > new; mv new pid; sleep 600")
    pid_in(project / "pid")
    sidecar.notify("$/cancelRequest", tool_use_id="use")
    with pytest.raises(RpcError):
        sidecar.result(running)
    kept = sidecar.request("tools/call", **call)
    assert kept["status"] == "error"
    assert kept["text"].startswith("§ stopped before its end, after ")
    shown = sidecar.request("worklog/show", session_id=session, handle=kept["handle"])
    assert shown["text"].endswith("\n2998\n2999\n3000\n")


def test_a_stopped_command_gives_what_it_wrote_and_is_ended_with_all_it_started(
    sidecar: Connection, session: str, project: Path
) -> None:
    script = "sleep 600 & echo $! > new; seq 1 3000; mv new pid; wait; echo never"
    call, running = _running(sidecar, session, script)
    pid = pid_in(project / "pid")
    stop = {"session_id": session, "tool_use_id": "use"}
    assert sidecar.request("tools/stop", **stop)["stopped"] is True
    envelope = sidecar.result(running)
    assert envelope["status"] == "error"
    assert envelope["message"].startswith("stopped by the person after ")
    assert envelope["text"].startswith("§ " + envelope["message"] + "\n1\n2\n")
    assert "\n2999\n3000\n§ Took " in envelope["text"]
    assert "never" not in envelope["text"]
    assert "left running" not in envelope["text"]
    assert envelope["data"]["interrupted"] is True
    assert until(lambda: not alive(pid))
    assert sidecar.request("tools/call", **call) == envelope
    assert sidecar.request("tools/stop", **stop)["stopped"] is False


def test_a_stopped_command_may_end_in_good_order(
    sidecar: Connection, session: str, project: Path
) -> None:
    script = "trap 'sleep 0.3; echo tidied; exit 3' TERM; touch ready; sleep 600 & wait"
    _, running = _running(sidecar, session, script)
    assert until((project / "ready").exists)
    sidecar.request("tools/stop", session_id=session, tool_use_id="use")
    envelope = sidecar.result(running)
    assert "\ntidied\n" in envelope["text"]
    assert envelope["data"]["exit_code"] == 3


@pytest.mark.process
def test_a_command_ends_with_a_sidecar_that_is_killed(
    sidecar: Sidecar, session: str, project: Path
) -> None:
    _running(sidecar, session, "sleep 600 & echo $! > new; mv new pid; trap '' TERM HUP; wait")
    pid = pid_in(project / "pid")
    assert alive(pid)
    sidecar.kill()
    assert until(lambda: not alive(pid))


@pytest.mark.process
def test_a_command_ends_with_a_killed_sidecar_after_others_have_ended(
    sidecar: Sidecar, session: str, project: Path
) -> None:
    first = _call(session, "first", command="true")
    asked = sidecar.request("tools/call", **first)
    sidecar.request("tools/call", **first, confirm_id=asked["confirm"]["id"])
    _running(sidecar, session, "echo $$ > new; mv new pid; sleep 600; echo")
    pid = pid_in(project / "pid")
    sidecar.kill()
    assert until(lambda: not alive(pid))


def test_the_output_so_far_is_reported_while_a_command_runs(
    sidecar: Connection, session: str
) -> None:
    script = "for n in 1 2 3 4 5 6 7 8; do echo line; sleep 0.3; done"
    call = _call(session, "use", command=script)
    asked = sidecar.request("tools/call", **call)
    sidecar.request("tools/call", **call, confirm_id=asked["confirm"]["id"])
    told = [str(progress) for progress in sidecar.notifications("$/progress")]
    assert any("bytes of output" in message for message in told), told


def _output_shown(sidecar: Connection) -> list[str]:
    told = [progress["value"] for progress in sidecar.notifications("$/progress")]
    return [value["output"] for value in told if "output" in value]


def test_the_newest_output_is_passed_on_while_a_command_runs(
    sidecar: Connection, session: str, project: Path
) -> None:
    script = (
        "seq 1 5000; printf '\\033[1mbold\\033[0m 10%%\\r20%%'; "
        "until test -e go; do sleep 0.05; done; "
        "echo; echo last; until test -e end; do sleep 0.05; done"
    )
    _, running = _running(sidecar, session, script)
    assert until(lambda: bool(_output_shown(sidecar)))
    first = _output_shown(sidecar)[-1]
    assert first.endswith("\n4999\n5000\n20%")
    assert first[0].isdigit()
    assert len(first) <= 4096
    (project / "go").touch()
    assert until(lambda: _output_shown(sidecar)[-1].endswith("\n20%\nlast\n"))
    known = len(_output_shown(sidecar))
    told = len(sidecar.notifications("$/progress"))
    assert until(lambda: len(sidecar.notifications("$/progress")) > told)
    assert len(_output_shown(sidecar)) == known, "what is not new is not told again"
    (project / "end").touch()
    assert sidecar.result(running)["status"] == "success"


# What stays


def test_what_stays_in_the_window_is_the_command_its_end_and_the_edges_of_its_output(
    run: Run, sidecar: Connection, session: str
) -> None:
    run("echo first;  seq 1 3000\nexit 2")
    entry = sidecar.request("worklog/list", session_id=session)["entries"][0]
    said = entry["compressed"].partition("] ")[2]
    assert said.startswith("Ran 'echo first; seq 1 3000 exit 2': exit 2, 3,001 lines.\nfirst\n1\n")
    assert "\n2999\n3000" in said
    assert len(said) <= 500
