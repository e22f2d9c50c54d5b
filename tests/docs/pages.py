"""The files of the documents, and functions that split them into parts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "docs"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Part:
    """A heading and the text below it, up to the next heading of its level or above."""

    heading: str
    text: str

    def blocks(self, language: str) -> list[str]:
        """Return the fenced blocks in this language."""
        return [found[2] for found in BLOCK.finditer(self.text) if found[1] == language]


def read(name: str) -> str:
    """Return a document's text."""
    return (FOLDER / name).read_text(encoding="utf-8")


def parts(text: str, level: int) -> Iterator[Part]:
    """Yield the parts whose headings have this level."""
    pattern = re.compile(rf"^#{{{level}}} (.+)$|^#{{1,{level}}} ", re.MULTILINE)
    # A comment in a block looks like a heading, so the blocks are hidden while cutting.
    hidden = BLOCK.sub(lambda block: re.sub(r"^#", " ", block[0], flags=re.MULTILINE), text)
    found = list(pattern.finditer(hidden))
    ends = [match.start() for match in found[1:]] + [len(text)]
    for match, end in zip(found, ends, strict=True):
        if match[1]:
            yield Part(match[1], text[match.end() : end])


def cell(text: str) -> str:
    """Return a text escaped for a table's cell."""
    return text.replace("|", "\\|").replace("\n", " ")


def table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [heading, ["---"] * len(heading), *rows]
    return "\n".join("| " + " | ".join(map(cell, line)) + " |" for line in lines)
