"""Find the words of a text, known as one token or not, and count odd runs of letters."""

from functools import cache, lru_cache
from itertools import filterfalse
from pathlib import Path
from typing import NamedTuple

CONTINUING = bytes(range(0x80, 0xC0))
"""The bytes that UTF-8 uses after the first byte of a character."""
UNBROKEN, FEW = 32, 6
"""A run of `UNBROKEN` letters or more, over `FEW` of them different, is a word of no language."""
STRETCH, FEW_KINDS = 512, range(12, 18)
"""The length of a stretch of unknown words, and how many different letters in it are few."""
EACH_BYTE = bytes(range(256))
SMALL = b"abcdefghijklmnopqrstuvwxyz"
BLANK = b"_"
"""The character that stands for a space before a word."""
LETTERS = bytes(
    byte if byte < 0x80 and chr(byte).isalpha() else ord("_" if byte == ord(" ") else " ")
    for byte in range(256)
)
NO_LETTERS = bytes(byte for byte in range(256) if LETTERS[byte] in b" _")
IS_SMALL, IS_CAPITAL, IS_BLANK = 1, 2, 4
CASES = bytes(
    IS_SMALL * chr(byte).islower() | IS_CAPITAL * chr(byte).isupper() | IS_BLANK * (byte == 0x5F)
    if byte < 0x80
    else 0
    for byte in range(256)
)
EITHER_CASE = bytes(ord("x" if case in (IS_SMALL, IS_CAPITAL) else " ") for case in CASES)
GAPS = bytes(ord(" ") if byte & 1 else 0 for byte in range(256))
"""Maps bytes whose lowest bit is set, because a word begins there, to a space, others to 0."""


@cache
def known_words() -> frozenset[bytes]:
    """Return the words that are one token, with `_` for a space before a word, and `_` alone."""
    return frozenset([*Path(__file__).with_name("words.txt").read_bytes().split(), BLANK])


class Divided(NamedTuple):
    """The words of a text, those that are not known as one token apart, with counts on all."""

    all: bytes
    """All words, with `_` for a space."""
    rest: bytes
    """The words that are not known as one token, with a space before each."""
    known: int
    """The number of words that are known as one token, with `_` alone among them."""
    pieces: int
    """The number of places where capitals divide words."""
    unbroken: int
    """The number of letters in runs so long that they are words of no language."""
    of_few: int
    """The number of characters in stretches of `rest` that consist of few letters, as random
    syllables do; stretches of still fewer letters, such as numbers, do not count."""

    def count_known(self) -> tuple[int, int]:
        """Return the number of known words, `_` alone not counted, and of their letters."""
        blanks = self.all.count(b"_ ") + self.all.endswith(b"_")
        letters = len(self.all.translate(None, b" _")) - len(self.rest.translate(None, b" _"))
        return self.known - blanks, letters


NO_WORDS = Divided(b"", b"", 0, 0, 0, 0)


@lru_cache(maxsize=1)
def divided(bones: bytes) -> Divided:
    """Return the words of a text, those that are not known as one token apart.

    `bones` is the text without `CONTINUING` bytes. A capital divides a word after a small letter,
    or, being the last of several, before a small one.
    """
    if not bones.translate(None, NO_LETTERS):
        return NO_WORDS
    letters = bones.translate(LETTERS).replace(b"____", b"   _")
    cases = int.from_bytes(letters.translate(CASES), "little")
    before = cases << 8
    begins = cases >> 1 & (before | before >> 1 & cases >> 8) | cases >> 2
    both = bytearray(2 * len(letters))
    both[::2] = begins.to_bytes(len(letters), "little").translate(GAPS)
    both[1::2] = letters
    in_words = bytes(both).translate(None, b"\0")
    pieces = len(in_words) - len(letters) - letters.count(b"_")
    words = in_words.split()
    unknown = list(filterfalse(known_words().__contains__, words))
    rest = b" ".join([b"", *unknown])
    stretches = (rest[at : at + STRETCH] for at in range(0, len(rest) - STRETCH + 1, STRETCH))
    of_few = STRETCH * sum(different(each, SMALL) in FEW_KINDS for each in stretches)
    return Divided(in_words, rest, len(words) - len(unknown), pieces, unbroken(letters), of_few)


def unbroken(letters: bytes) -> int:
    """Return the letters in long runs, without runs of capitals or of few different letters."""
    shape = letters.translate(EITHER_CASE) + b" "
    found, at = 0, shape.find(b"x" * UNBROKEN)
    while at >= 0:
        run = letters[at : shape.find(b" ", at)]
        found += len(run) if not run.isupper() and different(run.lower(), SMALL) > FEW else 0
        at = shape.find(b"x" * UNBROKEN, at + len(run))
    return found


def different(some: bytes, among: bytes = EACH_BYTE) -> int:
    """Return how many of the bytes of `among` are in `some`."""
    return len(among) - len(among.translate(None, some))
