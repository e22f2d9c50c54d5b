"""The query of a search, and its result."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

MOST_STORED = 10_000
"""The most matches of a search that are stored; more are only counted."""
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
    """The matches of one file as rg prints them: each as `line:column:text`.

    Lines of context are `line-text`; `--` stands where lines between them are missing.
    """

    path: bytes
    lines: bytes
    matches: int
    unsaved: bool = False
    stale: bool = False
    """Whether the buffer is unsaved, and its file changed on disk since Emacs read it."""


@dataclass(frozen=True)
class Hits:
    """The result of a search; each matching line counts as one match."""

    blocks: list[Block] = field(default_factory=list)
    """The matches by file, sorted by path; at most MOST_STORED matches with their lines."""
    matches: int = 0
    matched_files: int = 0
    searched_files: int = 0
    unreadable: int = 0
    binary: list[str] = field(default_factory=list)
    """The files of which lines are missing, because they turned out to be binary."""
    secret: list[str] = field(default_factory=list)
    """The files that were not searched, because they usually hold secrets."""
    unsettled: int = 0
    """The number of files left out because their folders changed during the search."""
    over_lines: bool = False
    """Whether a match may span lines; its lines are counted, or with `count` only the match."""


def join(one: Hits, other: Hits, *, count: bool) -> Hits:
    """Return the hits of two searches as one; drop matches beyond MOST_STORED unless `count`."""
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
    """Yield blocks until they have `most` matches together; cut the last block."""
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
