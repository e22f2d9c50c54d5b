"""The question about the MCP servers of a project's `.mcp.json`, in a terminal."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.emacs.conftest import Open
from tests.emacs.test_terminal import do
from tests.mcp.clients import FAKE

HELLO = '[[reply]]\ntext = "Hello to you."\n'
MANY = 40


def write(project: Path, starts: Path, names: list[str]) -> None:
    """Write a `.mcp.json` with the fake server under these names."""
    entry = {"command": sys.executable, "args": [str(FAKE), str(starts)]}
    servers = {"mcpServers": dict.fromkeys(names, entry)}
    (project / ".mcp.json").write_text(json.dumps(servers), encoding="utf-8")


def test_the_servers_of_a_project_run_only_after_a_yes(open_emacs: Open, project: Path) -> None:
    starts = project / "starts"
    write(project, starts, ["theirs"])
    terminal = open_emacs(HELLO, (120, 30))
    do(terminal, "Hello.")
    terminal.see("starts these programs, with your rights", "Start the 1 program")
    assert not starts.exists()
    terminal.type("y")
    terminal.see("theirs runs, 7 tools", "Hello to you.")
    assert starts.read_text(encoding="utf-8") == "started\n"


def test_a_long_question_cannot_be_allowed_before_its_end(open_emacs: Open, project: Path) -> None:
    starts = project / "starts"
    write(project, starts, [f"server{number}" for number in range(MANY)])
    terminal = open_emacs(HELLO, (120, 30))
    do(terminal, "Hello.")
    terminal.see("server0", "Start the 40 programs", "view the rest")
    terminal.type("y")
    terminal.see("Invalid choice")
    terminal.type("n")
    terminal.see("Hello to you.")
    assert not starts.exists()
