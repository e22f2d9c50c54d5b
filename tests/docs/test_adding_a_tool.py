"""`docs/adding-a-tool.md`: its example is a tool that runs, and its test passes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs import pages
from tests.sidecar import Sidecar

PAGE = pages.Part("", pages.read("adding-a-tool.md"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the page's two files, where the page says to put them."""
    tool, test = PAGE.blocks("python")
    for name, text in {"tools/line_count.py": tool, "tests/test_line_count.py": test}.items():
        file = tmp_path / name
        file.parent.mkdir()
        file.write_text(text, encoding="utf-8")
    return tmp_path


def test_the_tool_of_the_page_is_offered_and_runs_in_a_sidecar(folder: Path) -> None:
    """The folder is on `tools.path`, as the page says."""
    (folder / "notes.txt").write_text("one\ntwo\n", encoding="utf-8")
    environment = {"EFRIT_BUDGET_TOOLS__PATH": json.dumps([str(folder / "tools")])}
    with Sidecar(cwd=folder, env=environment) as sidecar:
        offered = {tool["name"] for tool in sidecar.request("tools/list")["tools"]}
        session = sidecar.request("session/open", root=".")["session_id"]
        call = {"session_id": session, "name": "line_count", "tool_use_id": "t1"}
        envelope = sidecar.request("tools/call", **call, arguments={"path": "notes.txt"})
    assert "line_count" in offered
    assert envelope["text"].startswith("§ notes.txt: 2 lines\n"), envelope


def test_the_test_of_the_page_passes(folder: Path) -> None:
    """Run by pytest, where the page puts it."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
