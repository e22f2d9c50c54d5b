"""Families of tokenizers: turn the estimate for Claude's into one for another family.

A family has a factor for each class of script. The characters of a text tell which part of the
estimate each class has: what they do not account for belongs to the class `letters`.
`tests.benchmarks.fit_families` has fitted the figures to the tokenizers of the families.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import ceil, floor

from efrit_budget.budget.estimate import EACH_BYTE, estimate, sample, sampled
from efrit_budget.budget.family_factors import COSTS, FACTORS

CLAUDE, UNKNOWN = "claude", "unknown"
"""The family that `estimate` counts for, and the one of models whose tokenizer is not known."""
CAPITALS, DIGITS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", b"0123456789"
LATIN_1_LEADS = b"\xc2", b"\xc3"
"""The first bytes, in UTF-8, of the characters beyond ASCII whose upper byte in UTF-16 is 0."""
PAGES = {
    "marked letters": (0x01, 0x02),
    "vietnamese": (0x1E,),
    "greek": (0x03, 0x1F),
    "cyrillic": (0x04,),
    "hebrew": (0x05,),
    "arabic": (0x06, 0x07, 0x08, 0xFB, 0xFC, 0xFD),
    "devanagari": (0x09,),
    "indic": (0x0A, 0x0B, 0x0C, 0x0D),
    "thai": (0x0E,),
    "chinese and japanese": (*range(0x30, 0xA0), 0xF9, 0xFA),
    "korean": (0x11, *range(0xAC, 0xD8)),
    "symbols": (*range(0x20, 0x30), *range(0xD8, 0xF9), 0xFE, 0xFF),
    "other scripts": (0x0F, 0x10, *range(0x12, 0x1E), *range(0xA0, 0xAC)),
}
"""The upper bytes, in UTF-16, of the characters of each class beyond ASCII, but for Latin-1's."""
CLASSES = ("letters", "capitals", "digits", *PAGES)
"""The classes of script; `letters` are all characters of ASCII that are in no other class."""
NO_CLASS = len(PAGES)
CLASS_OF_PAGE = bytes(
    next((at for at, pages in enumerate(PAGES.values()) if page in pages), NO_CLASS)
    for page in range(256)
)
ROUNDING = 1e-9
NONE_BEYOND_ASCII = (0,) * len(PAGES)


@dataclass(frozen=True)
class Family:
    """A family of tokenizers, with the factors of its classes; Claude's has none."""

    name: str
    factors: tuple[float, ...] = ()

    def estimate(self, text: str) -> int:
        """Return the tokens a text probably costs, counted whole; 0 if it is empty."""
        tokens = estimate(text)
        return self.from_claude(text, tokens) if self.factors else tokens

    def rough(self, text: str) -> int:
        """Return roughly the tokens of a text, from samples: fast, for finding a cut."""
        if not self.factors:
            return sampled(text)
        read = sample(text)
        return ceil(self.estimate(read) * len(text) / len(read)) if read else 0

    def from_claude(self, text: str, tokens: int) -> int:
        """Return the tokens of a text that has so many for Claude's family."""
        if not self.factors:
            return tokens
        parts, more = self._parts(text)
        return ceil(tokens * (self.factors[0] + more / max(tokens, parts, 1)))

    def to_claude(self, text: str, tokens: int) -> int:
        """Return the tokens of a text for Claude's family, at most a few too many."""
        if not self.factors:
            return tokens
        letters = self.factors[0]
        parts, more = self._parts(text)
        found = (tokens - more) / letters
        if found < parts:
            found = tokens / (letters + more / parts)
        return floor(found + ROUNDING)

    def _parts(self, text: str) -> tuple[float, float]:
        """Return what the classes but `letters` have of a text, and what their factors add."""
        letters, *others = self.factors
        parts = parts_of(text)
        more = (part * (factor - letters) for part, factor in zip(parts, others, strict=True))
        return sum(parts), sum(more)


@cache
def family_named(name: str) -> Family:
    """Return a family by its name; one that is not in the table counts as Claude's."""
    return Family(name, FACTORS.get(name, ()))


def family_names() -> list[str]:
    """Return the names of all families."""
    return [CLAUDE, *FACTORS]


def parts_of(text: str) -> list[float]:
    """Return what Claude's tokenizer usually charges for the characters of each class.

    The class `letters` is left out, as it has what remains of the estimate.
    """
    return [number * cost for number, cost in zip(count_classes(text), COSTS, strict=True)]


def count_classes(text: str) -> Sequence[int]:
    """Return how many characters a text has of each class but `letters`."""
    raw = text.encode("utf-8", "surrogatepass")
    capitals, digits = (len(raw) - len(raw.translate(None, some)) for some in (CAPITALS, DIGITS))
    if len(raw) == len(text):
        return capitals, digits, *NONE_BEYOND_ASCII
    pages = text.encode("utf-16-le", "surrogatepass")[1::2].translate(CLASS_OF_PAGE)
    present = EACH_BYTE.translate(None, EACH_BYTE.translate(None, pages))
    marked, *others = (pages.count(at) if at in present else 0 for at in range(len(PAGES)))
    return capitals, digits, marked + sum(map(raw.count, LATIN_1_LEADS)), *others
