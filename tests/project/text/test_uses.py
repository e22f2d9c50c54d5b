"""Tests of the names that a file uses."""

from __future__ import annotations

import pytest

from efrit_budget.project.text.uses import find_uses


def _found(name: str, text: bytes) -> set[bytes]:
    return set(find_uses(name, text).split(b" ")) - {b""}


def test_calls_methods_and_names_have_forms_of_their_own() -> None:
    assert _found("a.py", b"go(Shape).area() + 1\n") == {b"go(", b"Shape", b".area("}


def test_calls_and_quoted_names_of_lisp_have_one_form() -> None:
    assert _found("a.el", b"(my-go #'my-area other '(my-list))") == {
        *(b"'my-go", b"'my-area", b"'my-list")
    }


def test_comments_and_texts_are_left_out() -> None:
    assert _found("a.py", b'one # two\n\'three\' "four" """five\nsix""" seven') == {
        *(b"one", b"seven")
    }
    assert _found("a.c", b"one // two\n/* three\n * four */ five 'six' # seven") == {
        *(b"one", b"five", b"seven")
    }
    assert _found("a.el", b'one (two ; (three\n"(four \\" (five" ?\\" (six)') == {
        *(b"'two", b"'six")
    }


def test_a_quote_without_an_end_on_its_line_begins_no_text() -> None:
    assert _found("a.c", b"one ' two\nthree \" four\n") == {b"one", b"two", b"three", b"four"}


def test_a_comment_or_a_long_text_without_an_end_goes_on_to_the_end_of_the_file() -> None:
    assert _found("a.c", b"one /* two\nthree") == {b"one"}
    assert _found("a.py", b'one """ two\nthree') == {b"one"}


@pytest.mark.parametrize("name", ["a.py", "a.c", "a.el"])
@pytest.mark.parametrize("sign", [b"0", b"\\'", b'"\\', b"/*", b"(", b"\n", b'"""', b"('"])
def test_a_large_file_of_one_sign_is_read_to_its_end(name: str, sign: bytes) -> None:
    assert not _found(name, sign * (512 * 1024 // len(sign)))
