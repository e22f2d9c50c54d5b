"""`efrit-budget tool`."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.command import (
    TIME_LIMIT,
    efrit,
    efrit_at_a_terminal,
    open_session,
    write_config,
)
from tests.local_sidecar import TOOLS_FOR_TESTS
from tests.processes import until
from tests.sidecar import PROGRAM

ASKING_TOOL = '''
from typing import ClassVar

from efrit_budget.tools.base import Arguments, Hint, Outcome, Policy, ToolContext, question


class Launch:
    """Asks before it does anything."""

    name: ClassVar[str] = "launch"
    description: ClassVar[str] = "Launch."
    arguments: ClassVar[type[Arguments]] = Arguments
    policy: ClassVar[Policy] = Policy.ASK
    has_effects: ClassVar[bool] = True
    hint: ClassVar[Hint | None] = None

    def run(self, arguments: Arguments, context: ToolContext) -> Outcome:
        """Launch, once the person agrees."""
        return Outcome("launched") if context.confirmed else question("Really launch?")

    def compress(self, arguments: Arguments, outcome: Outcome) -> str:
        """The outcome."""
        return outcome.text


TOOL = Launch()
'''


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with one file."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "notes.txt").write_text("twelve bytes", encoding="utf-8")
    return folder


@pytest.fixture
def asking(home: Path, tmp_path: Path) -> None:
    """Install a tool that asks for confirmation in the person's folder."""
    folder = tmp_path / "tools"
    folder.mkdir()
    (folder / "launch.py").write_text(ASKING_TOOL, encoding="utf-8")
    write_config(home, f"[tools]\npath = ['{folder}']\n")


NOTES = '{"paths": ["notes.txt"]}'


def test_a_tool_prints_the_text_a_model_would_be_given(project: Path) -> None:
    ended = efrit("tool", "file_info", NOTES, cwd=project)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("notes.txt: ")
    assert ended.out.splitlines()[-1].startswith("📏 ~")


def test_a_tool_runs_in_another_folder_and_takes_its_arguments_from_stdin(project: Path) -> None:
    ended = efrit("tool", "file_info", "-", "--root", str(project), stdin=NOTES)
    assert ended.out.startswith("notes.txt: ")


def test_the_envelope_is_whole_for_machines(project: Path) -> None:
    envelope = efrit("tool", "file_info", NOTES, "--json", cwd=project).json
    assert envelope["status"] == "success"
    assert envelope["data"]["files"][0]["path"] == "notes.txt"
    assert envelope["handle"] == "r1"


def test_a_session_of_its_own_leaves_nothing_behind(project: Path) -> None:
    efrit("tool", "file_info", NOTES, cwd=project)
    assert efrit("sessions", "--all", "--json").json == {"sessions": []}


def test_what_the_projects_own_settings_may_not_do_is_warned_of(project: Path) -> None:
    (project / ".efrit.toml").write_text("[budget]\nfloor = 1\n", encoding="utf-8")
    ended = efrit("tool", "file_info", NOTES, cwd=project)
    assert ended.code == 0
    assert "warning: " in ended.complaint
    assert "a project may not set budget.floor" in ended.complaint


def test_a_named_session_keeps_the_call(project: Path) -> None:
    session = open_session(project)
    assert efrit("tool", "file_info", NOTES, "--session", session).code == 0
    assert efrit("sessions", "--json").json["sessions"][0]["calls"] == 1


def test_a_tool_that_fails_says_why_on_stderr_and_ends_with_1(project: Path) -> None:
    ended = efrit("tool", "file_info", '{"path": "notes.txt"}', cwd=project)
    assert (ended.code, ended.out) == (1, "")
    assert "paths: " in ended.complaint
    assert efrit("sessions", "--all", "--json").json == {"sessions": []}


def test_a_failure_is_an_envelope_too_for_machines(project: Path) -> None:
    ended = efrit("tool", "file_info", "{}", "--json", cwd=project)
    assert ended.code == 1
    assert ended.json["status"] == "error"


def test_an_unknown_tool_and_an_unknown_session_are_one_line_each(project: Path) -> None:
    assert "file_info" in efrit("tool", "fileinfo", cwd=project).complaint
    assert "zzzzz" in efrit("tool", "file_info", NOTES, "--session", "zzzzz").complaint


@pytest.mark.usefixtures("asking")
def test_without_a_terminal_nothing_is_confirmed(project: Path) -> None:
    ended = efrit("tool", "launch", cwd=project)
    assert (ended.code, ended.out) == (1, "")
    assert "not run" in ended.complaint
    assert "Really launch?" in ended.complaint
    assert "--yes" in ended.complaint


@pytest.mark.usefixtures("asking")
def test_yes_confirms_without_asking(project: Path) -> None:
    ended = efrit("tool", "launch", "--yes", cwd=project)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("launched\n")


@pytest.mark.usefixtures("asking")
@pytest.mark.parametrize(("typed", "code"), [("y\n", 0), ("n\n", 1), ("\n", 1)])
def test_at_a_terminal_the_person_is_asked(project: Path, typed: str, code: int) -> None:
    ended = efrit_at_a_terminal("tool", "launch", typed=typed, cwd=project)
    assert "Really launch? [y/N]" in ended.err
    assert ended.code == code
    assert ("launched" in ended.out) == (code == 0)


def test_ctrl_c_stops_a_tool_and_removes_its_session(home: Path, project: Path) -> None:
    write_config(home, f"[tools]\npath = ['{TOOLS_FOR_TESTS}']\n")
    tally = project / "tally"
    arguments = json.dumps({"file": str(tally), "seconds": 6000})
    with subprocess.Popen(
        [*PROGRAM, "tool", "tally", arguments], cwd=project, stderr=subprocess.PIPE
    ) as process:
        assert until(tally.exists)
        process.send_signal(signal.SIGINT)
        assert process.wait(TIME_LIMIT) == 130
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert efrit("sessions", "--all", "--json").json == {"sessions": []}
