"""Docstrings and messages are worded as `docs/style.md` says."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
VAGUE = re.compile(r"(What|How|Whether|Where|Which)\b")
"""The beginning of a docstring that names a question and not what the function does."""
LISP_DOCSTRING = re.compile(
    r'^\(def\S+ \S+ \([^)]*\)\n  "(What|How|Whether|Where|Which)\b', re.MULTILINE
)
LISP_MESSAGE = re.compile(r'\((?:message|user-error|error)\s+"[^"]*\bis none\b')


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


@pytest.mark.parametrize("pattern", [LISP_DOCSTRING, LISP_MESSAGE], ids=["docstring", "message"])
def test_the_lisp_files_have_none_of_the_worst_patterns(pattern: re.Pattern[str]) -> None:
    files = [*(ROOT / "elisp").rglob("*.el"), *(ROOT / "tests").rglob("*.el")]
    found = [
        f"{file.relative_to(ROOT)}: {match[0]}"
        for file in files
        for match in pattern.finditer(file.read_text(encoding="utf-8"))
    ]
    assert found == []
