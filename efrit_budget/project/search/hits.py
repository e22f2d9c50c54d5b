"""What is searched for, and what a search comes to."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

MOST_STORED = 10_000
"""Matches that are read one by one."""
CASES = {"smart": "--smart-case", "sensitive": "--case-sensitive", "ignore": "--ignore-case"}
MATCHED = re.compile(rb"(?m)^\d+:\d+:")

Case = Literal["smart", "sensitive", "ignore"]


@dataclass(frozen=True)
class Query:
    """A pattern to search for in each line, with its options."""

    pattern: str
    literal: bool = False
    case: Case = "sensitive"
    word: bool = False
    context: int = 0
    over_lines: bool = False
    """Whether a match may reach over several lines."""

    @property
    def flags(self) -> list[str]:
        """The rg flags of the query."""
        return [
            CASES[self.case],
            *(["--crlf"] if "$" in self.pattern and not self.literal else []),
            *(["--fixed-strings"] if self.literal else []),
            *(["--multiline"] if self.over_lines else []),
            *(["--word-regexp"] if self.word else []),
            *([f"--context={self.context}"] if self.context else []),
            f"--regexp={self.pattern}",
        ]


class Block(NamedTuple):
    """The matches of one file as rg prints them, with line and column.

    Lines around them stand behind their number and a dash, and two dashes in a gap.
    """

    path: bytes
    lines: bytes
    matches: int
    unsaved: bool = False
    stale: bool = False
    """Whether it is unsaved, and the file on disk has changed since."""


@dataclass(frozen=True)
class Hits:
    """The result of a search; matches are counted as lines."""

    blocks: list[Block] = field(default_factory=list)
    """By path, up to the most matches that are stored."""
    matches: int = 0
    matched_files: int = 0
    searched_files: int = 0
    unreadable: int = 0
    binary: list[str] = field(default_factory=list)
    """Files of which lines are missing, because they turned out to be binary."""
    unsettled: int = 0
    """Files that are left out, because they changed too fast to be looked at."""
    over_lines: bool = False
    """Whether matches may reach over lines; each line of one is counted, or each match by file."""


def join(one: Hits, other: Hits, *, count: bool) -> Hits:
    """Return the hits of two searches, by path."""
    if not other.searched_files:
        return one
    blocks = sorted([*one.blocks, *other.blocks])
    return replace(
        one,
        blocks=blocks if count else list(first_matches(MOST_STORED, blocks)),
        matches=one.matches + other.matches,
        matched_files=one.matched_files + other.matched_files,
        searched_files=one.searched_files + other.searched_files,
        unreadable=one.unreadable + other.unreadable,
        binary=sorted({*one.binary, *other.binary}),
    )


def first_matches(most: int, blocks: Iterable[Block]) -> Iterator[Block]:
    """Yield blocks up to a number of matches, with the last one cut."""
    for block in blocks:
        if block.matches > most:
            if most:
                yield cut_block(block, most)
            return
        yield block
        most -= block.matches


def cut_block(block: Block, most: int) -> Block:
    begins = [match.start() for match in MATCHED.finditer(block.lines)]
    return block._replace(lines=block.lines[: begins[most]].rstrip(b"\n"), matches=most)
