"""The windows of a session: which are kept at the bottom, and which are left alone."""

from __future__ import annotations

import time

from tests.emacs.conftest import Open
from tests.emacs.terminal import Terminal
from tests.emacs.test_terminal import PROMPT, do

LINES = "".join(f"Line {number}.\\n\\n" for number in range(1, 31))
SESSION = f"""
[[reply]]
text = "Short."
[[reply]]
text = "{LINES}That is all."
delay_ms = 60
"""


def window(screen: str) -> list[str]:
    """Return the lines of the session's window without its header."""
    lines = [line.rstrip() for line in screen.split("\n")]
    mode_line = next(number for number, line in enumerate(lines) if "*efrit: " in line)
    above = ("-UUU:", "File Edit")
    begin = max(number for number in range(mode_line) if lines[number].startswith(above))
    return lines[begin + 2 : mode_line]


def at_the_bottom(screen: str) -> bool:
    """Return whether the last line of the session's window is the reply box."""
    return "*efrit: " in screen and window(screen)[-1].startswith(PROMPT.rstrip())


def drawn(terminal: Terminal) -> list[str]:
    """Return the lines of the session's window once they are drawn, and change no more."""
    before: list[str] = []
    while (now := window(terminal.screen())) != before:
        before = now
        time.sleep(0.3)
    return now


def opened(open_emacs: Open) -> Terminal:
    """Return a terminal with the window of a session that has a short reply."""
    terminal = open_emacs(SESSION, (80, 30))
    do(terminal, "Say little.")
    terminal.see("Short.", "● ready")
    return terminal


def test_the_reply_box_is_at_the_bottom_of_a_window_that_the_text_does_not_fill(
    open_emacs: Open,
) -> None:
    terminal = opened(open_emacs)
    terminal.show(at_the_bottom)
    terminal.press("C-x", "1")
    terminal.gone("*scratch*")
    screen = terminal.show(at_the_bottom)
    assert window(screen)[0].startswith("efrit")
    terminal.type("some words")
    terminal.see(f"{PROMPT}some words")
    assert window(terminal.screen())[-1] == f"{PROMPT}some words"


def test_a_window_follows_what_comes_unless_its_person_reads_further_up(open_emacs: Open) -> None:
    terminal = opened(open_emacs)
    terminal.type("Say more.")
    terminal.press("Enter")
    assert at_the_bottom(terminal.see("Line 12."))
    terminal.press("M-v")
    terminal.gone("Line 12.")
    reading = drawn(terminal)
    terminal.see("Efrit: ready")
    assert drawn(terminal) == reading

    terminal.press("M->")
    terminal.see("That is all.")
    terminal.show(at_the_bottom)


def test_moving_to_an_exchange_shows_as_much_of_it_as_fits(open_emacs: Open) -> None:
    terminal = opened(open_emacs)
    terminal.type("Say more.")
    terminal.press("Enter")
    terminal.see("That is all.", "● ready")
    terminal.press("C-c", "C-p", "p")
    terminal.rest_on("You")
    assert window(terminal.screen())[:2] == ["You", "Say more."]
    terminal.press("p")
    terminal.see("Say little.", "Short.")
    terminal.press("BTab")
    screen = terminal.show(at_the_bottom)
    assert "Short." not in screen
    assert "Line 1." not in screen
    terminal.press("C-s")
    terminal.type("Line 20")
    terminal.press("Enter")
    terminal.see("Line 20.", "Line 19.")
