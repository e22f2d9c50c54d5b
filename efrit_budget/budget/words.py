"""The words of a text: those that are one token, and the others."""

from __future__ import annotations

import re
from functools import cache
from itertools import filterfalse
from pathlib import Path
from typing import NamedTuple

CONTINUING = bytes(range(0x80, 0xC0))
"""The bytes of UTF-8 behind the first of a character."""
PIECES = re.compile(r"_?[A-Z]?[a-z]+|_?[A-Z]+(?![a-z])")
UNBROKEN, FEW = 32, 6
BLANK = "_"
"""How a space before a word is written."""
LETTERS = bytes(
    byte if byte < 0x80 and chr(byte).isalpha() else ord(BLANK if byte == ord(" ") else " ")
    for byte in range(256)
)


@cache
def known_words() -> frozenset[str]:
    """The words that are one token, those behind a space with a `_` before them; and `_` alone."""
    listed = Path(__file__).with_name("words.txt").read_text(encoding="ascii")
    return frozenset([*listed.split(), BLANK])


def skeleton(text: str, raw: bytes) -> bytes:
    """A byte for each character: itself, or the first of its several bytes in UTF-8."""
    return raw if text.isascii() else raw.translate(None, CONTINUING)


def words(bones: bytes) -> list[str]:
    """The words of ASCII letters, those right behind a space with a `_` before them.

    A space that stands before something else may be a word `_`.
    """
    letters = bones.translate(LETTERS)
    return letters.replace(b"____", b"   _").replace(b"_", b" _").decode("ascii").split()


class Divided(NamedTuple):
    """Return what is left of a text without the words known to be one token."""

    rest: bytes
    pieces: int
    """In how many places capitals divide words."""
    unbroken: int
    """Letters in runs so long that they are words of no language."""


def divided(bones: bytes) -> Divided:
    """The words that are not known to be one token."""
    known = known_words().__contains__
    unknown = list(filterfalse(known, words(bones)))
    mixed = [word for word in unknown if not (word.islower() or word.istitle() or word.isupper())]
    whole = filterfalse(set(mixed).__contains__, unknown) if mixed else unknown
    pieces = PIECES.findall(" ".join(mixed))
    rest = " ".join(["", *whole, *filterfalse(known, pieces)])
    return Divided(rest.encode("ascii"), len(pieces) - len(mixed), unbroken(unknown))


def unbroken(found: list[str]) -> int:
    """Letters in runs so long that they are words of no language."""
    if max(map(len, found), default=0) < UNBROKEN:
        return 0
    return sum(len(word) for word in found if len(word) >= UNBROKEN and is_mixed(word))


def is_mixed(letters: str) -> bool:
    """Return whether letters are neither all capitals nor a sequence of bases."""
    return not letters.isupper() and len(set(letters.lower())) > FEW
