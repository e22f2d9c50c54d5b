"""Find words of a description in a text."""

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
    """Return the distinct words to search for."""
    words = filter(_is_search_word, WORD.findall(description))
    return tuple(dict.fromkeys(map(str.casefold, words)))[:MOST_WORDS]


def _is_search_word(word: str) -> bool:
    """Return whether a word is long enough, an acronym, or not Latin."""
    return len(word) >= LONG or word.isupper() or not word.isascii() or not word.isalpha()


def mentioned(words: Sequence[str], text: str) -> list[str]:
    """Return the words that a text contains, also as prefixes."""
    text_words = set(WORD.findall(text.casefold()))
    return [word for word in words if any(one.startswith(word) for one in text_words)]


def lines_with(words: Sequence[str], text: str) -> str:
    """Return the numbered lines with the most words, in order."""
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
