"""Classes of characters that a tokenizer treats alike, for the pairs of the estimator.

Counts for each two neighbours how often a token ends between them. Then merges characters, two
classes at a time, so that the pairs lose as little information as possible.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from efrit_budget.budget.words import CONTINUING, divided
from tests.benchmarks.tokenizers_real import tokenizer

Numbers = NDArray[np.float64]
Group = list[int]
SMALL, LARGE = list(range(97, 123)), list(range(65, 91))
CONTROLS = [code for code in range(32) if code not in (9, 10)] + [127]
DIGITS, BLANK, LINE_END = list(range(48, 58)), [32], [9, 10]
OUTSIDE = list(range(0x80, 0x100))
CYRILLIC = range(0x400, 0x530)
NIBBLE = 16
NEARLY_NONE = 1e-8
LONGEST = 4_000


@dataclass(frozen=True)
class Table:
    """For pairs of symbols: how often they met, and how often a token ended between them."""

    met: Numbers
    ended: Numbers

    @staticmethod
    def empty(size: int) -> Table:
        """Return a table with next to no counts, which decides nothing."""
        met = np.full((size, size), NEARLY_NONE)
        return Table(met, met / 2)

    def between(self, firsts: Sequence[Group], seconds: Sequence[Group]) -> Table:
        """Return the table summed up by groups."""
        met, ended = (
            np.array([[of[np.ix_(a, b)].sum() for b in seconds] for a in firsts])
            for of in (self.met, self.ended)
        )
        return Table(met, ended)

    def without(self, firsts: Group, seconds: Group) -> Table:
        """Return the table without some of the pairs."""
        met, ended = self.met.copy(), self.ended.copy()
        met[np.ix_(firsts, seconds)] = NEARLY_NONE
        ended[np.ix_(firsts, seconds)] = NEARLY_NONE / 2
        return Table(met, ended)

    @property
    def turned(self) -> Table:
        """The table with seconds as firsts."""
        return Table(self.met.T, self.ended.T)

    @property
    def shares(self) -> Numbers:
        """Return the share of occurrences after which a token ended."""
        found: Numbers = self.ended / self.met
        return found


def merged(table: Table, groups: Sequence[Group], size: int) -> list[Group]:
    """Merge groups until there are SIZE of them, first those that differ least."""
    met, ended, found = table.met.copy(), table.ended.copy(), [list(group) for group in groups]
    while len(found) > size:
        share = ended / met
        loss = np.full((len(found), len(found)), np.inf)
        for at in range(len(found) - 1):
            weight = met[at] * met[at + 1 :] / (met[at] + met[at + 1 :])
            loss[at, at + 1 :] = (weight * (share[at] - share[at + 1 :]) ** 2).sum(axis=1)
        one, other = (int(at) for at in np.unravel_index(loss.argmin(), loss.shape))
        met[one] += met[other]
        ended[one] += ended[other]
        found[one] += found.pop(other)
        met, ended = np.delete(met, other, 0), np.delete(ended, other, 0)
    return found


def classes(
    table: Table, items: Sequence[Group], fixed: Sequence[Group], size: int, rounds: int = 3
) -> tuple[list[Group], list[Group]]:
    """Return the classes of first and of second symbols, the fixed ones among them."""
    firsts = seconds = [*items, *fixed]
    for _ in range(rounds):
        firsts = [*merged(table.between(items, seconds), items, size - len(fixed)), *fixed]
        seconds = [
            *merged(table.turned.between(items, firsts), items, size - len(fixed)),
            *fixed,
        ]
    return firsts, seconds


def ends(found: Tokenizer, text: str) -> set[int]:
    """Return the offsets in a text at which a token begins."""
    return {start for start, _ in found.encode(text).offsets}


def joints(texts: Iterable[tuple[str, float]]) -> tuple[Table, Table]:
    """Count pairs of bytes and pairs of Cyrillic letters in weighted texts."""
    table, cyrillic, real = Table.empty(256), Table.empty(len(CYRILLIC)), tokenizer()
    for text, weight in texts:
        bones = text.encode().translate(None, CONTINUING)
        starts = ends(real, text)
        for at in range(1, len(text)):
            pair, share = (bones[at - 1], bones[at]), weight / len(starts)
            table.met[pair] += share
            table.ended[pair] += share * (at in starts)
            if ord(text[at - 1]) in CYRILLIC and ord(text[at]) in CYRILLIC:
                letters = ord(text[at - 1]) - CYRILLIC[0], ord(text[at]) - CYRILLIC[0]
                cyrillic.met[letters] += share
                cyrillic.ended[letters] += share * (at in starts)
    return table, cyrillic


def unknown_words(words: dict[str, Counter[bytes]], most: int = 500) -> Table:
    """Count pairs of letters in those words of each kind of text that are not one token."""
    table, real, rng = Table.empty(256), tokenizer(), random.Random(1)
    for found in words.values():
        some = rng.sample(sorted(found.items()), min(most, len(found)))
        counted = [
            (word, times, ends(real, word.decode().replace("_", " "))) for word, times in some
        ]
        total = sum(times * len(starts) for _, times, starts in counted)
        for word, times, starts in counted:
            for at in range(1, len(word)):
                pair = word[at - 1], word[at]
                table.met[pair] += times / total
                table.ended[pair] += times / total * (at in starts)
    return table


def words_in(text: str) -> Counter[bytes]:
    """Return the unknown words of a text, divided at capitals."""
    bones = text.encode("utf-8", "surrogatepass").translate(None, CONTINUING)
    return Counter(divided(bones).rest.split())


@dataclass(frozen=True)
class Classes:
    """The classes of a table, and how often tokens end between them."""

    firsts: list[Group]
    seconds: list[Group]
    shares: Numbers


def of_ascii(table: Table) -> Classes:
    """Return classes of ASCII; all else has the last class, and two letters are no joint."""
    letters = SMALL + LARGE
    items = [[code] for code in range(0x80) if code not in letters + CONTROLS]
    table = table.without(letters, letters)
    firsts, seconds = classes(table, items, [SMALL, LARGE, CONTROLS], NIBBLE - 1)
    return classed(table, [*firsts, OUTSIDE], [*seconds, OUTSIDE])


def of_borders(table: Table) -> Classes:
    """Return classes of bytes outside ASCII, by the first byte; ASCII itself has six."""
    inside = list(range(0x80))
    named = set(SMALL + LARGE + DIGITS + BLANK + LINE_END)
    fixed = [SMALL, LARGE, DIGITS, BLANK, LINE_END, [code for code in inside if code not in named]]
    seen = [[code] for code in range(0xC2, 0xF5) if table.met[code].sum() > 1e-4]
    table = table.without(inside, inside)
    firsts, seconds = classes(table, seen, fixed, NIBBLE)
    unseen = [code for code in OUTSIDE if [code] not in seen]
    firsts[0], seconds[0] = firsts[0] + unseen, seconds[0] + unseen
    return classed(table, firsts, seconds)


def of_letters(table: Table) -> Classes:
    """Return classes of letters, of the mark for a space and of the space between words."""
    items = [[code] for code in sorted({*SMALL, *LARGE, 32, 95})]
    return classed(table, *classes(table, items, [], NIBBLE))


def of_cyrillic(table: Table) -> Classes:
    """Return classes of the Cyrillic letters that occur; the last is for the blank."""
    seen = [[code] for code in range(len(CYRILLIC)) if table.met[code].sum() > 1e-4]
    return classed(table, *classes(table, seen, [], NIBBLE - 1))


def classed(table: Table, firsts: list[Group], seconds: list[Group]) -> Classes:
    """Return classes with the shares of their pairs; a pair hardly ever seen counts as divided."""
    found = table.between(firsts, seconds)
    return Classes(firsts, seconds, (found.ended + 2e-3) / (found.met + 2e-3))
