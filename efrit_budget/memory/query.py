"""A query as data: whatever a person or a model types becomes words to look for."""

from __future__ import annotations

from dataclasses import dataclass

from efrit_budget.results.body import sound_text

PREFIX = "*"


@dataclass(frozen=True)
class Query:
    """The words of a query; one that ends in a star stands for all that begin so."""

    words: tuple[str, ...]

    @property
    def all_words(self) -> str:
        """The expression that wants every word."""
        return " ".join(map(_quoted, self.words))

    @property
    def any_word(self) -> str:
        """The expression that wants one of them."""
        return " OR ".join(map(_quoted, self.words))


def parsed(text: str) -> Query:
    """The words of a text, each once, without those that hold neither letter nor digit."""
    words = sound_text(text).replace("\0", " ").split()
    return Query(tuple(dict.fromkeys(word for word in words if any(map(str.isalnum, word)))))


def _quoted(word: str) -> str:
    """A word as a string of the query language, in which only quotes mean something."""
    bare = word.rstrip(PREFIX)
    star = PREFIX if bare != word else ""
    escaped = bare.replace('"', '""')
    return f'"{escaped}"{star}'
