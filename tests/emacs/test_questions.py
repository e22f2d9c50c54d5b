"""A question is answered only where it is in sight, in a terminal."""

from __future__ import annotations

import time
from pathlib import Path

from tests.emacs.conftest import Open
from tests.emacs.terminal import Terminal
from tests.emacs.test_terminal import do

STEPS = "".join(f"\\n(setq step {number})" for number in range(40))
CODE = rf"(write-region \"\" nil \"done\"){STEPS}"
LONG = (
    f'[[reply]]\ntool = [{{ name = "eval_sexp", input = {{ code = "{CODE}" }} }}]\n'
    '[[reply]]\ntext = "As you say."\n'
)
SHORT = (
    '[[reply]]\ntool = [{ name = "eval_sexp", input = { code = '
    '\'(write-region "" nil "done")\' } }]\n[[reply]]\ntext = "As you say."\n'
)
REVIEW = "Review the question, then repeat the command"
SOON = 1.0
"""The seconds after a question appears in which a key may still be meant for the text before."""


def allow(terminal: Terminal) -> None:
    """Allow the request, from whichever buffer is current."""
    terminal.press("M-x")
    terminal.type("efrit-allow-once")
    terminal.press("Enter")


def test_a_question_whose_first_line_was_never_shown_is_shown_first(
    open_emacs: Open, project: Path
) -> None:
    terminal = open_emacs(LONG, (80, 24))
    do(terminal, "Set.")
    screen = terminal.see("(setq step 39)", "Evaluate this code in your Emacs?", "[y] once")
    assert "write-region" not in screen
    terminal.press("C-c", "C-y")
    terminal.see("write-region", REVIEW)
    assert not (project / "done").exists()
    time.sleep(SOON)
    terminal.press("M->", "C-c", "C-y")
    terminal.see("As you say.", "● ready")
    assert (project / "done").exists()


def test_a_question_on_a_frame_behind_another_is_not_in_sight(
    open_emacs: Open, project: Path
) -> None:
    terminal = open_emacs(SHORT)
    do(terminal, "Set.")
    terminal.see("Evaluate this code in your Emacs?")
    terminal.press("C-x", "5", "b")
    terminal.see("Switch to buffer in other frame")
    terminal.type("*Messages*")
    terminal.press("Enter")
    terminal.gone("Evaluate this code in your Emacs?")
    allow(terminal)
    terminal.see("Evaluate this code in your Emacs?", REVIEW)
    assert not (project / "done").exists()
    time.sleep(SOON)
    allow(terminal)
    terminal.see("As you say.", "● ready")


def test_a_list_of_the_session_is_not_its_question(open_emacs: Open, project: Path) -> None:
    terminal = open_emacs(SHORT)
    do(terminal, "Set.")
    terminal.see("Evaluate this code in your Emacs?")
    terminal.press("M-x")
    terminal.type("efrit-permissions")
    terminal.press("Enter")
    terminal.see("*efrit permissions")
    terminal.press("C-x", "1")
    terminal.gone("Evaluate this code in your Emacs?")
    allow(terminal)
    terminal.see("Evaluate this code in your Emacs?", REVIEW)
    assert not (project / "done").exists()


def test_an_answer_for_longer_is_listed_and_revoked(open_emacs: Open) -> None:
    terminal = open_emacs(
        '[[reply]]\nrepeat = 3\ntool = [{ name = "run_command", input = '
        '{ command = "git status -s" } }]\n[[reply]]\ntext = "As you say."\n'
    )
    do(terminal, "Look.")
    terminal.see("│ git status -s", "Run this command?", "[m] more")
    terminal.press("C-c", "C-a", "a")
    terminal.see(
        "Review what this answer is for, then repeat the command",
        "[s] exactly this command, this session",
        "[a] commands that begin with `git status`, this session",
        "[p] exactly this command, from now on in this project",
        "[A] commands that begin with `git status`, from now on in this project",
        "[N] never exactly this command, this session",
    )
    time.sleep(SOON)
    terminal.press("a")
    terminal.see(
        "Allowed this session: commands that begin with `git status`; M-x efrit-permissions",
        "As you say.",
        "● ready",
    )
    terminal.press("M-x")
    terminal.type("efrit-permissions")
    terminal.press("Enter")
    terminal.see("session    allow     commands that begin with `git status`")
    terminal.press("d")
    terminal.gone("session    allow")


def test_all_further_answers_come_in_sight_together(open_emacs: Open, project: Path) -> None:
    (project / "new.txt").write_text("".join(f"line {n}\n" for n in range(30)), encoding="utf-8")
    terminal = open_emacs(
        '[[reply]]\ntext = """' + "Before it.\\n\\n" * 12 + '"""\n'
        'tool = [{ name = "edit_file", input = { path = "new.txt", old_text = "line 9\\n", '
        'new_text = "line nine\\n" } }]\n[[reply]]\ntext = "As you say."\n',
        (80, 24),
    )
    do(terminal, "Edit.")
    terminal.see("Edit new.txt", "[y] once")
    terminal.press("C-x", "1", "C-c", "C-a", "m")
    terminal.see("Edit new.txt +1", "[s] edits of new.txt", "[N] never edits of new.txt")
