"""A session in a terminal, from the first key to the last."""

from __future__ import annotations

from tests.emacs.conftest import Open
from tests.emacs.terminal import Terminal

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
    """Have the model do a task."""
    terminal.press("M-x")
    terminal.type("efrit-do")
    terminal.press("Enter")
    terminal.see("Do:")
    terminal.type(task)
    terminal.press("Enter")


def test_a_person_does_a_task_answers_a_question_stops_and_goes_on(open_emacs: Open) -> None:
    terminal = open_emacs(SESSION)
    do(terminal, "What is here?")
    screen = terminal.see("May eval_sexp run?", "● waiting for your answer")
    for shown in (
        "k/100k  tools ",
        "I will read the README first.",
        "• read_file README.md",
        '│ code: (concat "six times " "seven")',
        "efrit: asks",
    ):
        assert shown in screen, f"{shown!r} is not on the screen:\n{screen}"

    terminal.rest_on("[y] once")
    terminal.press("y")
    terminal.see("• eval_sexp", "One word comes", "● writing")
    terminal.press("C-c", "C-k")
    stopped = terminal.see("— stopped —", "● ready")
    assert "very end" not in stopped

    terminal.type("Go on, please.")
    terminal.press("Enter")
    terminal.see("Go on, please.", "I go on from there.", "● ready")


def test_a_question_leaves_who_types_alone(open_emacs: Open) -> None:
    terminal = open_emacs(
        '[[reply]]\ntext = "Slowly it comes to that."\ndelay_ms = 300\n'
        'tool = [{ name = "eval_sexp", input = { code = "(* 6 7)" } }]\n'
        '[[reply]]\ntext = "That was it."\n'
    )
    do(terminal, "Multiply.")
    terminal.see("Slowly")
    terminal.type("any")
    terminal.see("May eval_sexp run?", f"{PROMPT}any")
    terminal.type("yn")
    terminal.see(f"{PROMPT}anyyn", "May eval_sexp run?")
    terminal.press("C-c", "C-d")
    terminal.see("✗ eval_sexp", "That was it.", "● ready")


def test_a_tool_opens_by_return_and_a_menu_shows_the_keys(open_emacs: Open) -> None:
    terminal = open_emacs(
        '[[reply]]\ntool = [{ name = "read_file", input = { path = "README.md" } }]\n'
        '[[reply]]\ntext = "So it is."\n'
    )
    do(terminal, "Look.")
    assert "A line." not in terminal.see("• read_file", "So it is.", "● ready")
    terminal.press("C-c", "C-p", "C-c", "C-p", "C-c", "C-p", "C-c", "C-p")
    terminal.rest_on("• read_file")
    terminal.press("Enter")
    terminal.see("path: README.md", "A line.")
    terminal.press("?")
    terminal.see(
        "k stop", "c continue", "r retry", "o open result", "w copy", "b budget", "R resume"
    )


def test_a_session_is_shown_as_it_was_after_emacs_was_killed(open_emacs: Open) -> None:
    killed = open_emacs(SESSION)
    do(killed, "What is here?")
    killed.see("May eval_sexp run?")
    killed.kill()

    terminal = open_emacs('[[reply]]\ntext = "Where was I?"\n')
    terminal.press("M-x")
    terminal.type("efrit-resume")
    terminal.press("Enter")
    terminal.see("Resume:")
    terminal.press("Tab")
    terminal.press("Enter")
    screen = terminal.see("What is here?", "I will read the README first.", "• read_file README.md")
    assert "▸ Thinking  28 characters" in screen
    terminal.press("C-c", "C-t")
    terminal.see("Where was I?", "● ready")
