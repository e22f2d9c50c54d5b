"""Find stretches of a text in which few pairs of characters occur, and the least they cost.

The cost of a pair is right on the average of many pairs. Where the same few pairs repeat, those
that cost more than assumed are not balanced by others that cost less.
"""

import re
from collections.abc import Container, Iterator, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple
from unicodedata import normalize

from efrit_budget.budget import weights
from efrit_budget.budget.shapes import DEAR_MARKS, ones, parts_cost
from efrit_budget.budget.words import BLANK, CONTINUING, different, divided, known_words

RULERS = "─═█▀▄░■—…\u3000．"  # noqa: RUF001
"""Characters that lines are drawn with, of which several are one token."""
STRETCH, LETTERS = 256, 12
"""A stretch of `STRETCH` characters is thin if at most `LETTERS` different letters are in it.

It is thin as well if every second character is one of at most `TURNS`; `FEW_TURNS` are tried first.
"""
TURNS, FEW_TURNS = 3, 16
MARKS = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
COMMON = frozenset(" \n0123456789" + MARKS)
COMMON_BYTES = bytes(map(ord, COMMON))
LETTER_BYTES = bytes(32 if chr(byte) in COMMON else byte for byte in range(256))
"""Maps the bytes of `COMMON` characters to a space, any other byte to itself."""
BEYOND_ASCII = b"\0" + b"\x80" * 255
COST, DIGIT_COST, CHEAP_COST = 0.85, 0.42, 0.55
"""The least tokens of a character in a thin stretch: a letter or mark, a digit, or another."""
FEWEST, FEWEST_COST, SOLID_SHARE = 6, 1.1, 0.95
"""The most different letters and marks that make each cost more beside digits, the least that it
costs then, and the share of characters that are not blank from which on a text is solid."""
FEW_PAIRS, PAIRS_READ, BLANKS_OF_RUNS = 72, 512, 24
"""The most different pairs that are few, of the characters read, and the most blanks in runs."""
FOREIGN_COST, BLANK_COST, LINE_END_COST = 0.95, 0.85, 0.5
"""The least tokens of a character beyond ASCII, of a blank beside such a character, and of the end
of a line of digits."""
BASES = "ACGT"
"""The letters of DNA sequences, which are thin too, but whose pairs have the right cost."""
LINES = [6 * mark for mark in RULERS]
"""Six equal characters that lines are drawn with; these cost next to nothing."""
RULE, RULE_SIZES = "\x01", (64, 16, 8, 4)
"""The character that replaces a token of equal marks, and the number of marks in such tokens."""
LONE_BLANK, BEFORE_RULE = " ~~", " " + RULE
"""Marks that a blank before them does not join, and rules that it may divide."""
NO_RULERS = {ord(each): None for each in RULERS}
CHEAP = b"-=*#./_~"
DIGITS = b"0123456789"

LONGEST_UNIT = 32
"""The most characters of a unit that a stretch repeats."""
ATOMS = re.compile(
    r" ?[A-Za-z]+|[0-9]{1,2}| ?([-=*#./_~])\1{0,31}|([─═█—…．])\2{0,7}|([▀▄░■])\3{0,3}"  # noqa: RUF001
    r"| ?[!-~]| +|\u3000+|[\n\t]{1,16}|.",
    re.DOTALL,
)
LETTER_COST = 0.9


class Stretches(NamedTuple):
    """The stretches of a text that cost more than their pairs, those of each kind as one text."""

    thin: str
    thin_cost: float
    repeated: str
    repeated_cost: float
    slow: int
    """The number of characters in stretches that repeat a unit longer than `LONGEST_UNIT`."""


def stretches(text: str) -> Stretches:
    """Return the thin and the repeating stretches of a text, with the least that they cost."""
    starts = range(0, len(text) - STRETCH + 1, STRETCH)
    units: dict[int, int] = {}
    for at in starts:
        unit = text.find(text[at : at + LONGEST_UNIT], at + 1, at + STRETCH) - at
        if unit > 0 and text[at : at + STRETCH - unit] == text[at + unit : at + STRETCH]:
            units[at] = unit
    again = {at: unit for at, unit in units.items() if unit <= LONGEST_UNIT}
    repeated = list(repeating_parts(text, again))
    thin = "".join(thin_stretches(text, again))
    slow = STRETCH * (len(units) - len(again))
    cost = sum(map(repeated_cost, repeated))
    return Stretches(thin, least_cost(thin), "".join(repeated), cost, slow)


def repeating_parts(text: str, units: Mapping[int, int]) -> Iterator[str]:
    """Yield the stretches that repeat the `units`, with what goes on likewise beside each run."""
    for at, unit in units.items():
        begin, end = at, at + STRETCH
        if begin - STRETCH not in units:
            while begin > 0 and text[begin - 1] == text[begin - 1 + unit]:
                begin -= 1
        if end not in units:
            while end < len(text) and text[end] == text[end - unit]:
                end += 1
        yield text[begin:end]


def thin_stretches(text: str, but: Container[int]) -> Iterator[str]:
    """Yield the thin stretches of a text, without those at the offsets of `but`."""
    some = one_byte_each(text).translate(LETTER_BYTES)
    for at in range(0, len(text) - STRETCH + 1, STRETCH):
        found = different(some[at : at + STRETCH])
        is_sure = found <= LETTERS and text.isascii()
        may_be_thin = (
            found <= LETTERS + 1
            or few_at_every_second(some[at : at + STRETCH])
            or few_at_every_second(some[at + 1 : at + STRETCH])
        )
        stretch = text[at : at + STRETCH]
        if may_be_thin and at not in but and (is_sure or is_thin(stretch)):
            yield stretch


def few_at_every_second(some: bytes) -> bool:
    """Return whether the bytes at the first, third and so on are at most `TURNS` different ones."""
    return different(some[:FEW_TURNS:2]) <= TURNS and different(some[::2]) <= TURNS


def one_byte_each(text: str) -> bytes:
    """Return a byte for each character: the lowest of its code, if not ASCII, above 127."""
    if text.isascii():
        return text.encode()
    raw = text.encode("utf-32-le", "surrogatepass")
    beyond = int.from_bytes(raw[1::4].translate(BEYOND_ASCII), "little")
    return (int.from_bytes(raw[::4], "little") | beyond).to_bytes(len(text), "little")


def is_thin(stretch: str) -> bool:
    """Return whether a stretch consists of few different letters, or of letters by turns."""
    return different_letters(stretch) <= LETTERS or takes_turns(stretch)


def different_letters(stretch: str) -> int:
    """Return the number of different characters that are not `COMMON`."""
    if stretch.isascii():
        return different(stretch.encode().translate(None, COMMON_BYTES))
    return len(set(stretch) - COMMON)


def few_pairs(text: str) -> float:
    """Return 1 if the same pair repeats in an unbroken text, 0 if pairs are as many as usual."""
    middle = text[max(0, (len(text) - PAIRS_READ) // 2) :][:PAIRS_READ]
    if len(text) < STRETCH or middle.count(" ") > BLANKS_OF_RUNS:
        return 0.0
    return max(0.0, 1 - len(set(pairwise(middle))) / FEW_PAIRS)


def takes_turns(stretch: str) -> bool:
    """Return whether every second character of a stretch is one of at most `TURNS`."""
    return min(len(set(stretch[::2])), len(set(stretch[1::2]))) <= TURNS


def is_dna(thin: str) -> bool:
    """Return whether a text in capitals consists of the letters of DNA, each of which occurs."""
    return not thin.strip(BASES + "N\n") and all(map(thin.__contains__, BASES))


def least_cost(thin: str) -> float:
    """Return the least tokens of thin stretches; a word that is known as one token costs one."""
    if not thin or is_dna(thin.upper()):
        return 0.0
    bones = thin.encode("utf-8", "surrogatepass").translate(None, CONTINUING)
    words = divided(bones)
    drawn = thin
    for mark in CHEAP.decode():
        if mark * RULE_SIZES[-1] in drawn:
            for size in RULE_SIZES:
                drawn = drawn.replace(mark * size, RULE)
    for line in () if thin.isascii() else LINES:
        drawn = drawn.replace(line, "")
    text = drawn.translate(NO_RULERS) if any(map(drawn.__contains__, RULERS)) else drawn
    plain = text.encode("ascii", "ignore")
    solid = plain.translate(None, b" \n\t")
    dear = solid.translate(None, CHEAP)
    letters = dear.translate(None, DIGITS)
    foreign = len(text) - len(plain)
    is_solid = len(solid) > len(plain) * SOLID_SHARE
    few = is_solid and len(letters) < len(dear) and different(letters) <= FEWEST
    of_characters = (
        (len(letters) - words.in_known()) * (FEWEST_COST if few else COST)
        + words.known_with_letters()
        + (len(dear) - len(letters)) * DIGIT_COST
        + (len(solid) - len(dear) + len(drawn) - len(text)) * CHEAP_COST
        + drawn.count(LONE_BLANK)
        + drawn.count(BEFORE_RULE)
        + (0 if letters else plain.count(b"\n") * LINE_END_COST)
        + foreign * FOREIGN_COST
        + min(len(plain) - len(solid), foreign) * BLANK_COST
        + own_cost(text)
    )
    marks = bones.translate(DEAR_MARKS).count(b"xx")
    digits = min(len(dear) - len(letters), 2 * marks)
    return max(of_characters, parts_cost(bones) + COST * marks + DIGIT_COST / 2 * digits)


@lru_cache(maxsize=256)
def repeated_cost(stretch: str) -> float:
    """Return the tokens of a repeating stretch, of whose atoms no two ever join to one token."""
    forms = stretch, normalize("NFKC", stretch)
    blanks = 0 if stretch.isascii() else stretch.count(" ") * BLANK_COST / 2
    return blanks + max(sum(map(atom_cost, atoms_of(form))) + own_cost(form) for form in forms)


def atoms_of(text: str) -> list[str]:
    """Return the atoms of a text: the parts at each of which a token begins."""
    return [match[0] for match in ATOMS.finditer(text)]


def atom_cost(atom: str) -> float:
    """Return the tokens of an atom: 1, or more for a word that is not known as one token."""
    letters = atom.lstrip(" ")
    is_word = letters.isascii() and letters.isalpha()
    if is_word and atom.encode().replace(b" ", BLANK) not in known_words():
        return max(1.0, LETTER_COST * len(letters))
    return 1.0


def own_cost(text: str) -> int:
    """Return the tokens beyond the first of all characters that are several tokens each."""
    if text.isascii():
        return 0
    coded = text.translate(weights.CHARACTERS).encode("latin-1", "replace")
    return ones(coded.translate(weights.EXTRA))
