"""Characters that are shown as pictures or numbers; Emacs and the sidecar have the same list."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from efrit_budget.characters import HIDDEN, all_seen, one_line_each
from efrit_budget.cli.output import printable

LISP = Path(__file__).resolve().parent.parent / "elisp" / "efrit-permissions.el"


@given(st.text())
def test_a_text_keeps_its_length_and_its_lines_end_at_newlines_alone(text: str) -> None:
    shown = one_line_each(text)
    assert len(shown) == len(text)
    assert shown.splitlines() == shown.removesuffix("\n").split("\n") if shown else True
    assert one_line_each(shown) == shown


def test_half_of_a_character_is_shown_as_a_question_mark() -> None:
    assert one_line_each("ä\ud800b\udfff\n") == "ä?b?\n"


@pytest.mark.parametrize("hidden", "\u3164\u115f\u2800\ufff9\u180e\u200e\u202e\u2066\u2028\x9b\x7f")
def test_what_cannot_be_seen_is_shown_by_its_number(hidden: str) -> None:
    assert all_seen(f"a{hidden}b") == f"a\\u{ord(hidden):04x}b"
    assert hidden not in printable(f"a{hidden}b")


def test_emacs_knows_the_same_characters() -> None:
    found = re.search(
        r"efrit-permissions-hidden-characters\n +\(concat ((?:\"[^\"]*\"\s*)+)\)", LISP.read_text()
    )
    assert found is not None
    written = "".join(re.findall(r'"([^"]*)"', found[1]))
    theirs = re.compile(re.sub(r"\\0", r"\\x00", written))
    differing = [
        hex(code)
        for code in (*range(0xD800), *range(0xE000, 0x1E000), *range(0xDFF00, 0xE1100))
        if chr(code) not in "\n\t"
        and (theirs.match(chr(code)) is None) != (HIDDEN.match(chr(code)) is None)
    ]
    assert not differing
