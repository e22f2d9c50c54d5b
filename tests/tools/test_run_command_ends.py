"""The end of `run_command`: no process is left, no key was readable, and no output is lost."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from efrit_budget.project.processes import landlock
from tests.connection import Connection, RpcError
from tests.databases import locked
from tests.local_sidecar import LocalSidecar
from tests.processes import alive, pid_in, until
from tests.sidecar import SERVE, Sidecar


def _begun(sidecar: Connection, session: str, use: str, command: str) -> int:
    """Start a command that the person allows and return the request."""
    call: dict[str, Any] = {
        "session_id": session,
        "name": "run_command",
        "arguments": {"command": command},
        "tool_use_id": use,
    }
    asked = sidecar.request("tools/call", **call)
    return sidecar.begin("tools/call", **call, confirm_id=asked["confirm"]["id"])


def _ran(sidecar: Connection, session: str, use: str, command: str) -> dict[str, Any]:
    found: dict[str, Any] = sidecar.result(_begun(sidecar, session, use, command))
    return found


# Processes

DAEMON = "echo $$ > new; mv new pid; exec sleep 600"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows who started whom")
@pytest.mark.parametrize("leaving", ["setsid", "setsid setsid", "env -i /usr/bin/setsid"])
def test_a_daemon_of_a_command_ends_with_it(
    sidecar: Connection, session: str, project: Path, leaving: str
) -> None:
    command = f"{leaving} /bin/sh -c '{DAEMON}' </dev/null >/dev/null 2>&1 &"
    envelope = _ran(sidecar, session, "use", f"{command} while ! test -e pid; do sleep 0.01; done")
    assert not alive(pid_in(project / "pid"))
    assert "What it left running was ended." in envelope["text"]


@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows who started whom")
def test_a_daemon_of_a_command_ends_with_a_sidecar_that_is_killed(
    sidecar: Sidecar, session: str, project: Path
) -> None:
    _begun(sidecar, session, "use", f"setsid /bin/sh -c '{DAEMON}' & sleep 600")
    pid = pid_in(project / "pid")
    sidecar.kill()
    assert until(lambda: not alive(pid))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows who started whom")
def test_a_daemon_of_another_command_runs_on(
    sidecar: Connection, session: str, project: Path
) -> None:
    daemon = f"setsid /bin/sh -c '{DAEMON}' </dev/null >/dev/null 2>&1 &"
    other = _begun(sidecar, session, "use", f"{daemon} while ! test -e over; do sleep 0.01; done")
    pid = pid_in(project / "pid")
    assert "left running" not in _ran(sidecar, session, "other", "true")["text"]
    assert alive(pid)
    (project / "over").touch()
    assert "What it left running was ended." in sidecar.result(other)["text"]
    assert not alive(pid)


# Keys

LOOKS = """
for process in /proc/[0-9]*; do tr '\\0' '\\n' <$process/environ; done 2>/dev/null | grep -c hidden-
grep -c hidden- /proc/$PPID/environ 2>/dev/null || test $? = 1 || echo 0
"""


@pytest.mark.process
@pytest.mark.parametrize("hides", ["true", "false"])
def test_no_process_shows_a_command_a_key(
    project: Path, monkeypatch: pytest.MonkeyPatch, hides: str
) -> None:
    if hides == "true" and not landlock.version():
        pytest.skip("this kernel has no Landlock")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "hidden-1")
    monkeypatch.setenv("EFRIT_BUDGET_TOOLS__HIDE_PROCESSES", hides)
    with subprocess.Popen(["sleep", "600"]) as other, Sidecar(command=SERVE) as sidecar:
        try:
            session = sidecar.request("session/open", root=str(project))["session_id"]
            found = _ran(sidecar, session, "use", LOOKS)
        finally:
            other.kill()
    elsewhere, in_the_sidecar = (int(line) for line in found["text"].splitlines()[1:3])
    assert in_the_sidecar == 0
    assert (elsewhere == 0) is (hides == "true")


def test_a_command_moves_files_between_folders_and_sees_processes(
    sidecar: Connection, session: str, project: Path
) -> None:
    (project / "a").mkdir()
    command = "echo x > one && mv one a/two && cat a/two && ps -o pid= -p $PPID | wc -l"
    text = _ran(sidecar, session, "use", command)["text"]
    assert text.splitlines()[:3] == ["§ exit 0", "x", "1"]


# Storing


@contextmanager
def _command_ended_while_locked(sidecar: Connection, project: Path, home: Path) -> Iterator[int]:
    """Hold the database's write lock while a command ends; give the request that waits for it."""
    session = sidecar.request("session/open", root=str(project))["session_id"]
    running = _begun(sidecar, session, "use", WAITS)
    assert until((project / "new").exists)
    with locked(home / "efrit/state/efrit-budget.sqlite3"):
        (project / "locked").touch()
        assert until(lambda: _says_so(sidecar))
        yield running


def _says_so(sidecar: Connection) -> bool:
    notes = sidecar.notifications("$/progress")
    return any("to store its result" in note["value"].get("message", "") for note in notes)


WAITS = "touch new; while ! test -e locked; do sleep 0.01; done; echo worth keeping"


def test_output_waits_for_a_database_that_is_locked_when_a_command_ends(
    project: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EFRIT_BUDGET_STORAGE__BUSY_TIMEOUT_MS", "100")
    with LocalSidecar() as sidecar:
        with _command_ended_while_locked(sidecar, project, home) as running:
            pass
        envelope = sidecar.result(running)
    assert envelope["status"] == "success"
    assert "worth keeping" in envelope["text"]


def test_output_that_nobody_waits_to_be_stored_comes_with_the_error(
    project: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EFRIT_BUDGET_STORAGE__BUSY_TIMEOUT_MS", "100")
    with LocalSidecar() as sidecar, _command_ended_while_locked(sidecar, project, home) as running:
        sidecar.notify("$/cancelRequest", id=running)
        with pytest.raises(RpcError, match="worth keeping") as caught:
            sidecar.result(running)
    assert caught.value.code == -32003
