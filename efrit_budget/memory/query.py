"""Parse a query into words to search for."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from efrit_budget.characters import sound_text

PREFIX = "*"
UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003ffff]"
)
"""The scripts without blanks between words, in which an index takes a whole run for one word."""


@dataclass(frozen=True)
class WordMatch:
    """The expressions that query the two indexes; an empty one is not used."""

    words: str
    """Queries the index of word stems."""
    beginnings: str
    """Queries the index of words as they are spelled."""
    parts: tuple[str, ...] = ()
    """Texts to look for inside of words, too; the indexes are not used then."""
    any_word: bool = False
    """Whether one of the words is enough for an observation to match."""


@dataclass(frozen=True)
class WordQuery:
    """The words of a query; a trailing star matches any ending."""

    words: tuple[str, ...]

    def attempts(self) -> Iterator[WordMatch]:
        """Yield the matches to try, one after the other, until one finds an observation.

        First the words as they were typed, with the parts of `foo-baz` side by side; then all
        parts anywhere; then, where a script has no blanks between words, all inside of words, too;
        then any part.
        """
        if not self.words:
            return
        parts = tuple(dict.fromkeys(part for word in self.words for part in _parts(word)))
        yield _match(self.words, any_word=False)
        if parts != self.words:
            yield _match(parts, any_word=False)
        if any(UNSPACED.search(part) for part in parts):
            inside = tuple(part.rstrip(PREFIX).casefold() for part in parts)
            yield WordMatch("", "", parts=inside)
        if len(parts) > 1:
            yield _match(parts, any_word=True)


def parse_query(text: str) -> WordQuery:
    """Return the distinct words of a text that have a letter or digit."""
    words = sound_text(text).replace("\0", " ").split()
    return WordQuery(tuple(dict.fromkeys(word for word in words if any(map(_is_indexed, word)))))


def _parts(word: str) -> Iterator[str]:
    """Yield the parts of one typed word as the indexes split it; the last may be a prefix."""
    bare = word.rstrip(PREFIX)
    parts = "".join(each if _is_indexed(each) else " " for each in bare).split()
    yield from parts[:-1]
    if parts:
        yield parts[-1] + word[len(bare) :][:1]


def _is_indexed(character: str) -> bool:
    """Return whether the indexes treat a character as part of a word."""
    category = unicodedata.category(character)
    return category[0] in "LNM" or category == "Co"


def _match(words: Sequence[str], *, any_word: bool) -> WordMatch:
    operator = " OR " if any_word else " "
    whole = operator.join(_quote(word) for word in words if not word.endswith(PREFIX))
    prefixes = operator.join(_quote(word) for word in words if word.endswith(PREFIX))
    return WordMatch(whole, prefixes, any_word=any_word)


def _quote(word: str) -> str:
    """Return a word quoted for SQLite's full-text search; a trailing star stays outside."""
    bare = word.rstrip(PREFIX)
    star = PREFIX if bare != word else ""
    escaped = bare.replace('"', '""')
    return f'"{escaped}"{star}'
