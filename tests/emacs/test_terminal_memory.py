"""Memory and undo, used by keys in a terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import efrit
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
    """Run a command by its name."""
    terminal.press("M-x")
    terminal.type(command)
    terminal.press("Enter")


def remember(project: Path, title: str, content: str) -> None:
    """Save an observation from the command line."""
    ended = efrit(
        *("memory", "save", "--title", title, "--content", content, "--project", project.name)
    )
    assert ended.code == 0


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
    terminal.see("Do in ")
    terminal.type("Change the line.")
    terminal.press("Enter")
    terminal.see("Edit README.md +1", "-A line.", "+B!", "[y] once")
    terminal.press("C-c", "C-a")
    terminal.press("y")
    terminal.see("It is another line now.", "● ready")
    assert (project / "README.md").read_text(encoding="utf-8") == "# Sample\n\nB!\n"

    give(terminal, "efrit-undo-session")
    terminal.see("README.md", "unchanged")
    terminal.press("Enter")
    terminal.see("-A line.", "+B!")
    terminal.press("u")
    terminal.see("undone")
    assert (project / "README.md").read_text(encoding="utf-8") == "# Sample\n\nA line.\n"


def test_a_query_may_hold_several_words_and_question_marks(remembering: Terminal) -> None:
    give(remembering, "efrit-memory-search")
    remembering.see("Search memory:", "Retries back off", "Tokens are counted")
    remembering.type("wait? twi")
    remembering.gone("Tokens are counted")
    remembering.see("Search memory: wait? twi", "Retries back off")
    remembering.press("Enter")
    remembering.see("They wait twice as long.")


@pytest.mark.parametrize("typed", ["a", ""])
@pytest.mark.parametrize(
    ("key", "shown", "opened"),
    [
        (None, "{#2 [note] Tokens are counted", "About four characters."),
        ("Down", "{#1 [note] Retries back off", "They wait twice as long."),
        ("Up", "{#1 [note] Retries back off", "They wait twice as long."),
    ],
)
def test_the_selected_one_of_the_results_is_opened(
    remembering: Terminal, typed: str, key: str | None, shown: str, opened: str
) -> None:
    give(remembering, "efrit-memory-search")
    remembering.see("Search memory: {#2 [note] Tokens are counted", "#1 [note] Retries back off")
    if typed:
        remembering.type(typed)
        remembering.see(f"Search memory: {typed}{{#2", "#1")
    if key:
        remembering.press(key)
    remembering.see(f"Search memory: {typed}{shown}")
    remembering.press("Enter")
    remembering.see(opened, "importance: 0.5")


@pytest.mark.parametrize("mode", ["icomplete-mode", "fido-mode"])
def test_what_was_selected_is_opened_where_a_person_uses_another_display(
    remembering: Terminal, mode: str
) -> None:
    give(remembering, mode)
    remembering.see("mode enabled")
    give(remembering, "efrit-memory-search")
    remembering.see("Search memory:")
    remembering.type("wait long")
    remembering.see("Search memory: wait long[#1 [note] Retries back off]")
    remembering.press("Enter")
    remembering.see("They wait twice as long.", "importance: 0.5")


SLOWLY = """(advice-add 'efrit-memory--ask :before
  (lambda (&rest _) (let ((end (+ (float-time) 900)))
    (while (< (float-time) end) (sit-for 0.05)))))"""


def test_a_slow_query_is_dropped_when_more_is_typed(remembering: Terminal) -> None:
    remembering.press("M-:")
    remembering.type(" ".join(SLOWLY.split()))
    remembering.press("Enter")
    give(remembering, "efrit-memory-search")
    typed = ""
    for more in "retries back":  # Emacs 30 loses keys that interrupt in quick succession
        remembering.type(more)
        typed += more
        remembering.rest_on(f"Search memory: {typed}".rstrip())
