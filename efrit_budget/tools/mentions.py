"""Which words of a description stand in a text, and in which of its lines."""

from __future__ import annotations

import re
from collections.abc import Sequence

MOST_WORDS = 50
MOST_LINES = 5
MOST_LINE = 200
WORD = re.compile(r"[^\W_]{2,}")
LONG = 4
"""Letters from which on a word is looked for; shorter ones are those of grammar."""


def words_of(description: str) -> tuple[str, ...]:
    """The words that are looked for, each once."""
    words = filter(_is_looked_for, WORD.findall(description))
    return tuple(dict.fromkeys(map(str.casefold, words)))[:MOST_WORDS]


def _is_looked_for(word: str) -> bool:
    """Whether it is long, a name in capitals, or of a script that needs few letters."""
    return len(word) >= LONG or word.isupper() or not word.isascii() or not word.isalpha()


def mentioned(words: Sequence[str], text: str) -> list[str]:
    """The words that a text holds, be it as the beginning of longer ones."""
    held = set(WORD.findall(text.casefold()))
    return [word for word in words if any(one.startswith(word) for one in held)]


def lines_with(words: Sequence[str], text: str) -> str:
    """The lines that hold most of the words, in their order and behind their numbers."""
    counts = {
        number: len(mentioned(words, line)) for number, line in enumerate(text.split("\n"), 1)
    }
    most = sorted(filter(counts.__getitem__, counts), key=lambda number: -counts[number])
    lines = text.split("\n")
    return "\n".join(
        f"{number}: {_short(lines[number - 1])}" for number in sorted(most[:MOST_LINES])
    )


def _short(line: str) -> str:
    bare = line.strip()
    return bare if len(bare) <= MOST_LINE else f"{bare[:MOST_LINE]}…"
