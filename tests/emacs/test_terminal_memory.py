"""Memory, and taking back edits, in a terminal by keys."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.emacs.conftest import Open
from tests.emacs.terminal import Terminal

EDITS = """
[[reply]]
tool = [{ name = "read_file", input = { path = "README.md" } }]

[[reply]]
[[reply.tool]]
name = "edit_file"
input = { path = "README.md", old_text = "A line.", new_text = "B!" }

[[reply]]
text = "It is another line now."
"""


def give(terminal: Terminal, command: str) -> None:
    """Give a command by its name."""
    terminal.press("M-x")
    terminal.type(command)
    terminal.press("Enter")


def remember(project: Path, title: str, content: str) -> None:
    """Save an observation from the command line."""
    save = [sys.executable, "-m", "efrit_budget", "memory", "save", "--title", title]
    save += ["--content", content, "--project", project.name]
    subprocess.run(save, check=True, capture_output=True)


@pytest.fixture
def remembering(open_emacs: Open, project: Path) -> Terminal:
    """An Emacs with two observations in memory."""
    remember(project, "Retries back off", "They wait twice as long.")
    remember(project, "Tokens are counted", "About four characters.")
    return open_emacs('[[reply]]\ntext = "Well."\n')


def test_memory_is_searched_while_typing_opened_and_its_neighbours_shown(
    remembering: Terminal,
) -> None:
    give(remembering, "efrit-memory-search")
    remembering.see("Search memory:", "Retries back off", "Tokens are counted")
    remembering.type("retr")
    remembering.gone("Tokens are counted")
    remembering.see("Retries back off")
    remembering.press("Enter")
    remembering.see("They wait twice as long.", "importance: 0.5")
    remembering.press("t")
    remembering.see("Retries back off", "Tokens are counted", "They wait twice as long.")


def test_memory_is_inserted_with_a_prefix_argument(remembering: Terminal) -> None:
    remembering.press("C-x", "b")
    remembering.type("notes")
    remembering.press("Enter", "C-u")
    give(remembering, "efrit-memory-search")
    remembering.see("Search memory:")
    remembering.type("token")
    remembering.gone("Retries back off")
    remembering.press("Enter")
    remembering.rest_on("About four characters.")


def test_an_edit_is_looked_at_allowed_and_taken_back(open_emacs: Open, project: Path) -> None:
    terminal = open_emacs(EDITS)
    give(terminal, "efrit-do")
    terminal.see("Do:")
    terminal.type("Change the line.")
    terminal.press("Enter")
    terminal.see("Edit README.md (+1", "-A line.", "+B!")
    terminal.press("C-c", "C-a")
    terminal.rest_on("Edit README.md (+1")
    terminal.press("y")
    terminal.see("It is another line now.", "● ready")
    assert (project / "README.md").read_text(encoding="utf-8") == "# Sample\n\nB!\n"

    give(terminal, "efrit-undo-session")
    terminal.see("README.md", "as the model left it")
    terminal.press("Enter")
    terminal.see("-A line.", "+B!")
    terminal.press("u")
    terminal.see("taken back")
    assert (project / "README.md").read_text(encoding="utf-8") == "# Sample\n\nA line.\n"
