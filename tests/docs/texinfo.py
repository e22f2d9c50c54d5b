"""The sources of the manual: their texts escaped, and read as the pages in Markdown are."""

from __future__ import annotations

import re
from pathlib import Path

from tests.docs import pages

FOLDER = pages.FOLDER / "manual"
MAIN = FOLDER / "efrit.texi"
SPECIAL = re.compile(r"[@{}]")
ESCAPED = re.compile(r"@([@{}])")
LITERAL = re.compile(r"@(?:code|kbd|file|samp)\{((?:@[@{}]|[^@{}])*)\}")
"""Matches what stands in backquotes in Markdown."""
EXAMPLE = re.compile(r"^@example *(.*)\n((?:.*\n)*?)@end example$", re.MULTILINE)


def sources() -> list[Path]:
    """Return the files of the manual."""
    return sorted(FOLDER.glob("*.texi"))


def escape(text: str) -> str:
    """Return a text in which no character is a command of Texinfo."""
    return SPECIAL.sub(r"@\g<0>", text)


def unescape(text: str) -> str:
    """Return the text that was escaped."""
    return ESCAPED.sub(r"\1", text)


def code(text: str) -> str:
    """Return a text as code."""
    return f"@code{{{escape(text)}}}"


def markdown_of(page: Path) -> str:
    """Return the text of a page in Markdown, or of a source as if it were one."""
    text = page.read_text(encoding="utf-8")
    return as_markdown(text) if page.suffix == ".texi" else text


def as_markdown(text: str) -> str:
    """Return a source with the same lines, its examples fenced and its literals in backquotes."""
    fenced = EXAMPLE.sub(lambda found: f"```{found[1]}\n{unescape(found[2])}```", text)
    return LITERAL.sub(lambda found: f"`{unescape(found[1])}`", fenced)
