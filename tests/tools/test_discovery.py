"""Tests of finding tools: the catalog's, and files of the person's own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import efrit
from tests.local_sidecar import TOOLS_FOR_TESTS, LocalSidecar
from tests.sidecar import Sidecar

WAIT = (TOOLS_FOR_TESTS / "wait.py").read_text(encoding="utf-8")


@pytest.fixture
def own_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for a person's own tools."""
    folder = tmp_path / "own tools"
    folder.mkdir()
    monkeypatch.setenv("EFRIT_BUDGET_TOOLS__PATH", json.dumps([str(folder)]))
    return folder


def _names() -> list[str]:
    with LocalSidecar() as sidecar:
        return [tool["name"] for tool in sidecar.request("tools/list")["tools"]]


def _refusal() -> str:
    """Return what the command line says that cannot begin with these tools."""
    ended = efrit("tools")
    assert ended.code == 1
    return ended.complaint


def test_a_sidecar_that_cannot_load_a_tool_ends_and_says_why(own_tools: Path) -> None:
    (own_tools / "mine.py").write_text("raise RuntimeError('on purpose')", encoding="utf-8")
    with Sidecar() as sidecar:
        sidecar.begin("tools/list")
        sidecar.close_stdin()
        assert sidecar.wait_exit() == 1
        told = sidecar.errors()
    assert "on purpose" in told
    assert "Traceback" not in told


def test_a_file_in_the_persons_folder_is_a_tool(own_tools: Path) -> None:
    (own_tools / "mine.py").write_text(WAIT.replace('"wait"', '"mine"'), encoding="utf-8")
    names = _names()
    assert "mine" in names
    assert "file_info" in names
    assert names == sorted(names)


def test_files_that_begin_with_an_underscore_and_other_files_are_no_tools(
    own_tools: Path,
) -> None:
    (own_tools / "_part.py").write_text("raise RuntimeError", encoding="utf-8")
    (own_tools / "notes.txt").write_text("raise RuntimeError", encoding="utf-8")
    assert "file_info" in _names()


def test_two_tools_of_one_name_are_refused_by_name(own_tools: Path) -> None:
    (own_tools / "one.py").write_text(WAIT, encoding="utf-8")
    (own_tools / "two.py").write_text(WAIT, encoding="utf-8")
    assert "'wait'" in _refusal()


def test_a_tool_cannot_take_the_name_of_one_in_the_catalog(own_tools: Path) -> None:
    (own_tools / "mine.py").write_text(WAIT.replace('"wait"', '"file_info"'), encoding="utf-8")
    assert "'file_info'" in _refusal()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("this is not python", "mine.py"),
        ("raise RuntimeError('on purpose')", "on purpose"),
        ("import no_such_module_anywhere", "no_such_module_anywhere"),
        ("TOOLS = []", "TOOL"),
        ("TOOL = 5", "mine.py"),
        ("import sys; sys.exit(3)", "mine.py"),
        (WAIT.replace('"wait"', '"Not A Name"'), "Not A Name"),
        (WAIT.replace("Policy.ALLOW", "'perhaps'"), "perhaps"),
        (WAIT.replace("def run", "def walk"), "run"),
        (WAIT.replace('"""A tool', '\0"""A tool', 1), "mine.py"),
    ],
)
def test_a_broken_tool_file_is_told_by_what_is_wrong_with_it(
    own_tools: Path, content: str, told: str
) -> None:
    (own_tools / "mine.py").write_text(content, encoding="utf-8")
    assert told in _refusal()


def test_a_folder_of_tools_that_is_not_there_is_told(own_tools: Path) -> None:
    own_tools.rmdir()
    assert "is not a folder" in _refusal()


def test_a_denied_tool_is_not_offered(own_tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (own_tools / "mine.py").write_text(WAIT, encoding="utf-8")
    monkeypatch.setenv("EFRIT_BUDGET_TOOLS__DENY", '["wait"]')
    assert "wait" not in _names()


def test_every_tool_is_listed_with_schema_place_and_policy(own_tools: Path) -> None:
    with LocalSidecar() as sidecar:
        tools = sidecar.request("tools/list")["tools"]
    for tool in tools:
        assert tool["description"]
        assert tool["input_schema"]["type"] == "object"
        assert tool["runs_in"] == "sidecar"
        assert tool["policy"] in ("allow", "ask")
