"""Docstrings and messages are worded as `docs/style.md` says."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parent.parent
VAGUE = re.compile(r"(What|How|Whether|Where|Which)\b")
"""The beginning of a docstring that names a question and not what the function does."""
LISP_DEFINITION = re.compile(
    r"^\((?:cl-)?def(?:un|macro|struct|var|var-local|const|custom|group|face)|^\(ert-deftest",
    re.MULTILINE,
)
LISP_VAGUE = re.compile(r'^  "(?:(?:What|How|Which|Where)(?:ever)?|Whether)\b.*', re.MULTILINE)
"""The first line of such a docstring: it begins at the second column of its definition."""
LISP_MESSAGE = re.compile(
    r'\((?:message|user-error|error|efrit-\S*(?:refuse|fail|note)\S*)\s+[^"()]*'
    r'"[^"]*\b(?:is|are) none\b[^"]*"'
)


def functions(file: Path) -> Iterator[tuple[str, str]]:
    """Return the name and the docstring of each function of a file that has one."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text is not None:
                yield f"{file.relative_to(ROOT)}:{node.lineno} {node.name}", text


def python_files() -> list[Path]:
    """Return the files of the package and the tests."""
    return [*(ROOT / "efrit_budget").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]


def test_a_docstring_says_what_a_function_does() -> None:
    found = [name for file in python_files() for name, text in functions(file) if VAGUE.match(text)]
    assert found == []


def lisp_files() -> list[Path]:
    """Return the Lisp files of the package and the tests."""
    return [*(ROOT / "elisp").rglob("*.el"), *(ROOT / "tests").rglob("*.el")]


def forms(text: str) -> Iterator[str]:
    """Return the definitions in the text of a Lisp file, each up to the next one."""
    starts = [match.start() for match in LISP_DEFINITION.finditer(text)]
    for start, end in pairwise([*starts, len(text)]):
        yield text[start:end]


def test_a_docstring_in_lisp_says_what_is_defined() -> None:
    found = [
        f"{file.relative_to(ROOT)}: {match[0]}"
        for file in lisp_files()
        for form in forms(file.read_text(encoding="utf-8"))
        if (match := LISP_VAGUE.search(form))
    ]
    assert found == []


def test_no_message_in_lisp_says_that_there_is_none() -> None:
    found = [
        f"{file.relative_to(ROOT)}: {match[0]}"
        for file in lisp_files()
        for match in LISP_MESSAGE.finditer(file.read_text(encoding="utf-8"))
    ]
    assert found == []
