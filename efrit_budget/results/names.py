"""Find the names in a text: paths, symbols and numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterator
from math import sqrt

PATTERN = re.compile(
    r"""(?x)
    [\w.@~-]*(?:/[\w.@-]+)+                             # a path
    | \b[A-Za-z_]\w*(?:(?:::|\.|->|-)[A-Za-z_]\w*)+     # names joined
    | \b[A-Za-z]\w*_\w+ | \b_\w{3,}                     # words joined by underscores
    | \b[a-z]+[A-Z]\w* | \b[A-Z][a-z]+[A-Z]\w*          # words joined by capitals
    | \b[A-Za-z]+\d\w* | \b\d{3,}\b                     # words with digits, numbers
    """
)
RUN = re.compile(r"[\w.@~/:>-]+")
"""A run of the characters that names have; longer ones than `LONGEST` are data."""
LEAST, LONGEST = 4, 200
"""The least and the most characters of a name that is no number."""
LEAST_DIGITS = 3
"""The least digits of a number."""
LOOKED_AT = 200_000
"""The most characters of a text in which names are counted."""


def names(text: str) -> frozenset[str]:
    """Return the names in a text; the last part of a path is a name as well."""
    return frozenset(count_names(text))


def most_frequent(text: str, room: int, without: Container[str] = "") -> str:
    """Return the most frequent names of a text, separated by spaces, in at most `room` characters.

    Of two that are as frequent, the shorter comes first; names in `without` are left out.
    """
    counted = count_names(text[:LOOKED_AT])
    found: list[str] = []
    for name in sorted(counted, key=lambda name: counted[name] / sqrt(len(name)), reverse=True):
        if len(name) + 1 <= room and name not in without:
            found.append(name)
            room -= len(name) + 1
        elif room < LEAST:
            break
    return " ".join(found)


def count_names(text: str) -> Counter[str]:
    """Return how often each name occurs in a text, in the order of their first occurrences."""
    counted: Counter[str] = Counter()
    for word, times in Counter(text.split()).items():
        if word.isdigit():
            if len(word) >= LEAST_DIGITS:
                counted[word] += times
        elif not (word.isalpha() and word.islower()):
            for name in _in_word(word):
                counted[name] += times
    return counted


def _in_word(word: str) -> Iterator[str]:
    """Yield the names in what stands between blanks."""
    if len(word) > LONGEST:
        for run in RUN.findall(word):
            if len(run) <= LONGEST:
                yield from _in_word(run)
        return
    for match in PATTERN.finditer(word):
        name = match[0].strip(".-")
        if len(name) < LEAST and not name.isdigit():
            continue
        yield name
        last = name.rpartition("/")[2]
        if last != name and len(last) >= LEAST:
            yield last
