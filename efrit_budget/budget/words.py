"""The words of a text: those that are one token, and the others."""

from __future__ import annotations

from functools import cache
from itertools import filterfalse
from pathlib import Path
from typing import NamedTuple

CONTINUING = bytes(range(0x80, 0xC0))
"""The bytes of UTF-8 behind the first of a character."""
UNBROKEN, FEW = 32, 6
"""A run of so many letters, more than so many of them different, is a word of no language."""
STRETCH, FEW_KINDS = 512, range(12, 18)
"""Characters of unknown words that are looked at together, and how few letters they may be of."""
SMALL = b"abcdefghijklmnopqrstuvwxyz"
BLANK = "_"
"""How a space before a word is written."""
LETTERS = bytes(
    byte if byte < 0x80 and chr(byte).isalpha() else ord(BLANK if byte == ord(" ") else " ")
    for byte in range(256)
)
IS_SMALL, IS_CAPITAL, IS_BLANK = 1, 2, 4
CASES = bytes(
    IS_SMALL * chr(byte).islower() | IS_CAPITAL * chr(byte).isupper() | IS_BLANK * (byte == 0x5F)
    if byte < 0x80
    else 0
    for byte in range(256)
)
EITHER_CASE = b" xx" + b" " * 253
GAPS = bytes([0, ord(" "), *bytes(254)])
"""A space where a word is divided, and nothing elsewhere."""


@cache
def known_words() -> frozenset[str]:
    """The words that are one token, those behind a space with a `_` before them; and `_` alone."""
    listed = Path(__file__).with_name("words.txt").read_text(encoding="ascii")
    return frozenset([*listed.split(), BLANK])


def parted(bones: bytes) -> tuple[bytes, bytes]:
    """Return the ASCII letters, and the same divided into words and at capitals by spaces.

    A `_` stands for a space, and a space for all else. Capitals begin a part of a word behind a
    small letter, or as the last of several before a small one.
    """
    letters = bones.translate(LETTERS).replace(b"____", b"   _")
    size = len(letters)
    cases = int.from_bytes(letters.translate(CASES), "little")
    before = cases << 8
    begins = cases >> 1 & (before | before >> 1 & cases >> 8) | cases >> 2
    begins &= int.from_bytes(b"\1" * size, "little")
    both = bytearray(2 * size)
    both[::2] = begins.to_bytes(size, "little").translate(GAPS)
    both[1::2] = letters
    return letters, bytes(both).translate(None, b"\0")


class Divided(NamedTuple):
    """What is left of a text without the words known to be one token."""

    rest: bytes
    pieces: int
    """In how many places capitals divide words."""
    unbroken: int
    """Letters in runs so long that they are words of no language."""


def divided(bones: bytes) -> Divided:
    """Return what is left of a text without the words known to be one token."""
    letters, in_words = parted(bones)
    pieces = len(in_words) - len(letters) - letters.count(b"_")
    unknown = filterfalse(known_words().__contains__, in_words.decode("ascii").split())
    return Divided(" ".join(["", *unknown]).encode("ascii"), pieces, unbroken(letters))


def unbroken(letters: bytes) -> int:
    """Count letters in long runs that are neither all capitals nor a sequence of bases."""
    shape = letters.translate(CASES).translate(EITHER_CASE) + b" "
    found, at = 0, shape.find(b"x" * UNBROKEN)
    while at >= 0:
        run = letters[at : shape.find(b" ", at)]
        found += len(run) if not run.isupper() and len(set(run.lower())) > FEW else 0
        at = shape.find(b"x" * UNBROKEN, at + len(run))
    return found


def made_of_few(rest: bytes) -> int:
    """Count the characters of whole stretches of unknown words that are made of few letters.

    Such are syllables in random order. Of still fewer letters are numbers, bases and the like.
    """
    whole = len(rest) - len(rest) % STRETCH
    stretches = (rest[at : at + STRETCH] for at in range(0, whole, STRETCH))
    return STRETCH * sum(
        sum(map(stretch.__contains__, SMALL)) in FEW_KINDS for stretch in stretches
    )
