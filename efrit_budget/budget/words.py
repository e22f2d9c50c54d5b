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
GAPS = bytes([0, ord(" "), *bytes(254)])
"""Maps byte 1, which marks that a word is divided, to a space, and every other byte to 0."""


@cache
def known_words() -> frozenset[bytes]:
    """Return the words that are one token, with `_` for a space before a word, and `_` alone."""
    return frozenset([*Path(__file__).with_name("words.txt").read_bytes().split(), BLANK])


def parted(bones: bytes) -> tuple[bytes, bytes]:
    """Return the ASCII letters of a text, and the same with a space where capitals divide words.

    `bones` is the text without `CONTINUING` bytes. In both, `_` stands for a space, and a space
    for all but letters. A capital divides a word after a small letter, or, being the last of
    several, before a small one.
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

    def count_known(self) -> tuple[int, int]:
        """Return the number of known words, `_` alone not counted, and of their letters."""
        blanks = self.all.count(b"_ ") + self.all.endswith(b"_")
        letters = len(self.all.translate(None, b" _")) - len(self.rest.translate(None, b" _"))
        return self.known - blanks, letters


NO_WORDS = Divided(b"", b"", 0, 0, 0)


@lru_cache(maxsize=1)
def divided(bones: bytes) -> Divided:
    """Return the words of a text, those that are not known as one token apart."""
    if not bones.translate(None, NO_LETTERS):
        return NO_WORDS
    letters, in_words = parted(bones)
    pieces = len(in_words) - len(letters) - letters.count(b"_")
    words = in_words.split()
    unknown = list(filterfalse(known_words().__contains__, words))
    rest = b" ".join([b"", *unknown])
    return Divided(in_words, rest, len(words) - len(unknown), pieces, unbroken(letters))


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


def made_of_few(rest: bytes) -> int:
    """Return the number of characters in stretches of unknown words that consist of few letters.

    Random syllables are such. Stretches of still fewer letters, such as numbers, do not count.
    """
    whole = len(rest) - len(rest) % STRETCH
    stretches = (rest[at : at + STRETCH] for at in range(0, whole, STRETCH))
    return STRETCH * sum(different(stretch, SMALL) in FEW_KINDS for stretch in stretches)
