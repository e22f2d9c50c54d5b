"""A session in a terminal, from the first key to the last."""

from __future__ import annotations

import time
from pathlib import Path

from tests.emacs.conftest import Open
from tests.emacs.terminal import Terminal
from tests.processes import until

PROMPT = "\N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} "

SESSION = """
[[reply]]
thinking = "The README tells what it is."
text = "I will read the README first."
tool = [{ name = "read_file", input = { path = "README.md" } }]

[[reply]]
text = "Now something is to be evaluated."
tool = [{ name = "eval_sexp", input = { code = "(concat \\"six times \\" \\"seven\\")" } }]

[[reply]]
text = "One word comes after the other, slowly, so that there is time to stop before the very end."
delay_ms = 700

[[reply]]
text = "I go on from there."
"""


def do(terminal: Terminal, task: str) -> None:
    """Give the model a task."""
    terminal.press("M-x")
    terminal.type("efrit-do")
    terminal.press("Enter")
    terminal.see("Do in ")
    terminal.type(task)
    terminal.press("Enter")


def test_a_person_does_a_task_answers_a_question_stops_and_goes_on(open_emacs: Open) -> None:
    terminal = open_emacs(SESSION)
    do(terminal, "What is here?")
    screen = terminal.see("Evaluate this code in your Emacs?", "● waiting for your answer")
    for shown in (
        "k until it compacts · $0.",
        "I will read the README first.",
        "• Read README.md",
        '│ (concat "six times " "seven")',
        "Efrit: asks you",
    ):
        assert shown in screen, f"{shown!r} is not on the screen:\n{screen}"

    terminal.press("C-c", "C-a")
    terminal.rest_on('│ (concat "six times " "seven")')
    terminal.press("y")
    terminal.see("• Evaluate (", "One word comes", "● writing")
    terminal.press("C-c", "C-k")
    stopped = terminal.see("— stopped —", "● ready")
    assert "very end" not in stopped

    terminal.type("Go on, please.")
    terminal.press("Enter")
    terminal.see("Go on, please.", "I go on from there.", "● ready")


def test_the_sidecar_starts_while_the_person_types(open_emacs: Open, home: Path) -> None:
    terminal = open_emacs('[[reply]]\ntext = "Here I am."\n')
    terminal.press("M-x")
    terminal.type("efrit-do")
    terminal.press("Enter")
    terminal.see("Do in ")
    assert until(lambda: any((home / "efrit").rglob("*.sqlite*")))
    terminal.press("C-g")
    terminal.see("Quit")
    do(terminal, "What is here?")
    terminal.see("Here I am.", "● ready")


def test_a_question_leaves_who_types_alone(open_emacs: Open) -> None:
    terminal = open_emacs(
        '[[reply]]\ntext = "Slowly it comes to that."\ndelay_ms = 300\n'
        'tool = [{ name = "eval_sexp", input = { code = "(* 6 7)" } }]\n'
        '[[reply]]\ntext = "That was it."\n'
    )
    do(terminal, "Multiply.")
    terminal.see("Slowly")
    terminal.type("any")
    terminal.see("Evaluate this code in your Emacs?", f"{PROMPT}any")
    terminal.type("yn")
    terminal.see(f"{PROMPT}anyyn", "Evaluate this code in your Emacs?")
    terminal.press("C-c", "C-d")
    terminal.see("✗ Denied: Evaluate (", "That was it.", "● ready")


def test_an_answer_in_words_is_what_was_typed(open_emacs: Open) -> None:
    """Each of its letters is a key of the buffer above the reply box."""
    terminal = open_emacs(
        '[[reply]]\ntool = [{ name = "ask_user", input = { question = "Which?", '
        'options = ["the old", "the new"] } }]\n[[reply]]\ntext = "As you say."\n'
    )
    do(terminal, "Ask me.")
    terminal.see("The model asks:", "[1] the old", "● waiting for your answer")
    time.sleep(1)
    for letter in "keep quality, 1 expects":
        terminal.type(letter)
    terminal.see(f"{PROMPT}keep quality, 1 expects", "The model asks:")
    terminal.press("Enter")
    terminal.see("As you say.", "● ready")
    terminal.see("• Asked: ")
    terminal.press(*["C-c", "C-p"] * 2)
    terminal.rest_on("• Asked: ")
    terminal.press("Enter")
    terminal.see("    keep quality, 1 expects")


def test_one_key_too_many_does_not_answer_the_next_question(open_emacs: Open) -> None:
    terminal = open_emacs(
        '[[reply]]\ntool = [{ name = "eval_sexp", input = { code = "(+ 1 1)" } }, '
        '{ name = "eval_sexp", input = { code = "(+ 2 2)" } }]\n[[reply]]\ntext = "Both."\n'
    )
    do(terminal, "Add.")
    terminal.see("Evaluate this code in your Emacs?  (the first of 2)")
    terminal.press("C-c", "C-a", "y", "y")
    terminal.see("This question is new", "│ (+ 2 2)", "● waiting for your answer")
    time.sleep(1)
    terminal.press("y")
    terminal.see("Both.", "● ready")


def test_a_question_longer_than_the_window_is_read_from_its_first_line(open_emacs: Open) -> None:
    code = "".join(f"(setq step {number})\\n" for number in range(40))
    terminal = open_emacs(
        f'[[reply]]\ntool = [{{ name = "eval_sexp", input = {{ code = "{code}" }} }}]\n'
        '[[reply]]\ntext = "Done."\n',
        (80, 24),
    )
    do(terminal, "Set.")
    screen = terminal.see(
        "(setq step 39)",
        "Evaluate this code in your Emacs?",
        "[y] once",
        "goes to the first of its 41 lines",
    )
    assert "(setq step 0)" not in screen
    terminal.press("C-c", "C-a")
    terminal.see("(setq step 0)", "(setq step 10)")
    terminal.rest_on("(setq step 0)")
    terminal.press("n")
    terminal.see("Done.", "● ready")


def test_the_menu_fits_a_small_terminal(open_emacs: Open) -> None:
    terminal = open_emacs("", (80, 24))
    terminal.press("M-x")
    terminal.type("efrit")
    terminal.press("Enter")
    screen = terminal.see(
        "No session is open here",
        "Session",
        "Look",
        "Sessions",
        "Memory",
        "New sessions",
        "model: claude-sonnet-5-5",
        "limits: $2, 100 turns",
        "pack for elsewhere",
    )
    assert "\\" not in screen, screen


def test_the_menu_fits_beside_a_session_that_asks(open_emacs: Open) -> None:
    terminal = open_emacs(
        '[[reply]]\ntool = [{ name = "eval_sexp", input = { code = "(+ 1 2)" } }]\n', (80, 24)
    )
    do(terminal, "Count.")
    terminal.see("Evaluate this code in your Emacs?")
    terminal.press("C-c", "?")
    terminal.see(
        "Count.", "Answers", "allow once", "model: claude-sonnet-5-5", "pack for elsewhere"
    )


def test_an_evaluation_without_end_is_quit_as_any_other(open_emacs: Open, project: Path) -> None:
    terminal = open_emacs(
        '[[reply]]\ntool = [{ name = "eval_sexp", input = { code = '
        '\'(write-region "" nil "begun") (while t)\' } }]\n'
        '[[reply]]\nexpect_contains = "The person stopped it (quit)."\ntext = "So be it."\n'
    )
    do(terminal, "Go round.")
    terminal.see("Evaluate this code in your Emacs?")
    terminal.press("C-c", "C-y")
    assert until((project / "begun").exists)
    terminal.press("C-g")
    terminal.see("✗ Evaluate (", "So be it.", "● ready")


def test_a_tool_opens_by_tab_and_a_menu_shows_the_keys(open_emacs: Open) -> None:
    terminal = open_emacs(
        '[[reply]]\ntool = [{ name = "read_file", input = { path = "README.md" } }]\n'
        '[[reply]]\ntext = "So it is."\n'
    )
    do(terminal, "Look.")
    assert "A line." not in terminal.see("• Read README.md", "So it is.", "● ready")
    terminal.press("C-c", "C-p", "C-c", "C-p")
    terminal.rest_on("• Read README.md")
    terminal.press("Tab")
    terminal.see("path: README.md", "A line.")
    terminal.press("?")
    terminal.see(
        "k stop", "c continue", "r retry", "o open result", "w copy", "b budget", "R resume"
    )


def test_a_session_is_shown_as_it_was_after_emacs_was_killed(open_emacs: Open) -> None:
    killed = open_emacs(SESSION)
    do(killed, "What is here?")
    killed.see("Evaluate this code in your Emacs?")
    killed.kill()

    terminal = open_emacs('[[reply]]\ntext = "Where was I?"\n')
    terminal.press("M-x")
    terminal.type("efrit-resume")
    terminal.press("Enter")
    terminal.see("Resume (default What is here?):")
    terminal.press("Enter")
    screen = terminal.see("What is here?", "I will read the README first.", "• Read README.md")
    assert "▸ Thinking  28 characters" in screen
    terminal.press("C-c", "C-t")
    terminal.see("Where was I?", "● ready")
