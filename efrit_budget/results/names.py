"""Find the names in a text: paths, symbols and numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from functools import lru_cache
from math import sqrt

WORDS = r"""
    \b[A-Za-z_]\w*(?:(?:::|\.|->|-)[A-Za-z_]\w*)+       # words joined
    | \b[A-Za-z]\w*_\w+ | \b_\w{3,}                     # words joined by underscores
    | \b[a-z]+[A-Z]\w* | \b[A-Z][a-z]+[A-Z]\w*          # words joined by capitals
    | \b[A-Za-z]+\d\w* | \b\d{3,}\b                     # words with digits, numbers
"""
NAME = re.compile(WORDS, re.VERBOSE)
NAME_OR_PATH = re.compile(rf"[\w.@~-]*(?:/[\w.@-]+)+ | {WORDS}", re.VERBOSE)
RUN = re.compile(r"[\w.@~/:>-]+")
"""A run of the characters that names have; longer ones than `LONGEST` are data."""
LEAST, LONGEST = 4, 200
"""The least and the most characters of a name that is no number."""
LEAST_DIGITS = 3
"""The least digits of a number."""
LOOKED_AT = 200_000
"""The most characters of a text in which names are counted."""
REMEMBERED_RUNS, REMEMBERED_RESULTS = 4_096, 1_000
"""The runs and the results whose names are remembered: texts of a project repeat them."""


def names(text: str) -> frozenset[str]:
    """Return the names in a text; the last part of a path is a name as well."""
    return frozenset(count_names(text))


def most_frequent(text: str, room: int, without: Container[str] = "") -> str:
    """Return the most frequent names of a text, separated by spaces, in at most `room` characters.

    Names in `without` are left out.
    """
    counted = count_names(text[:LOOKED_AT])
    found: list[str] = []
    for name in ranked(counted):
        if len(name) + 1 <= room and name not in without:
            found.append(name)
            room -= len(name) + 1
        elif room < LEAST:
            break
    return " ".join(found)


def ranked(counted: Counter[str]) -> list[str]:
    """Return the names, the most frequent first; of two as frequent, the shorter one."""
    return sorted(counted, key=lambda name: counted[name] / sqrt(len(name)), reverse=True)


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


known_names = lru_cache(maxsize=REMEMBERED_RESULTS)(count_names)
"""Returns the names of a result with their counts, which are found once."""


def _in_word(word: str) -> Iterable[str]:
    """Return the names in what stands between blanks, in their order."""
    if len(word) <= LONGEST:
        return _in_run(word)
    return (name for run in RUN.findall(word) if len(run) <= LONGEST for name in _in_run(run))


@lru_cache(maxsize=REMEMBERED_RUNS)
def _in_run(run: str) -> tuple[str, ...]:
    """Return the names in a run that is not too long to have any."""
    return tuple(_with_last_parts((NAME_OR_PATH if "/" in run else NAME).findall(run)))


def _with_last_parts(found: list[str]) -> Iterator[str]:
    """Yield the names that are long enough, each path followed by its last part."""
    for text in found:
        name = text.strip(".-")
        if len(name) < LEAST and not name.isdigit():
            continue
        yield name
        last = name.rpartition("/")[2]
        if last != name and len(last) >= LEAST:
            yield last
