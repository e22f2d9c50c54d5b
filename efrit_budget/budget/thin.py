"""Find stretches of a text in which few pairs of characters occur, and the least they cost.

The cost of a pair is right on the average of many pairs. Where the same few pairs repeat, those
that cost more than assumed are not balanced by others that cost less.
"""

import re
from functools import lru_cache
from typing import NamedTuple
from unicodedata import normalize

from efrit_budget.budget import weights
from efrit_budget.budget.shapes import DEAR_MARKS, ones, parts_cost
from efrit_budget.budget.words import BLANK, CONTINUING, known_words, parted

RULERS = "─═█▀▄░■—…\u3000．"  # noqa: RUF001
"""Characters that lines are drawn with, of which several are one token."""
STRETCH, LETTERS = 256, 12
"""A stretch of `STRETCH` characters is thin if at most `LETTERS` different letters are in it.

Without letters, it is thin with up to `MOST_DIGITS` digits, or `DIGITS_ALONE` different ones.
"""
MOST_DIGITS = STRETCH * 2 // 5
DIGITS_ALONE, TURNS, FEW_TURNS = 5, 3, 16
"""The most different digits, and characters at every second place; the characters tried first."""
MARKS = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
COMMON = frozenset(" \n0123456789" + MARKS)
LETTER_BYTES = bytes(32 if chr(byte) in COMMON else byte for byte in range(256))
"""Maps the bytes of `COMMON` characters to a space, any other byte to itself."""
EACH_BYTE = bytes(range(256))
BEYOND_ASCII = b"\0" + b"\x80" * 255
COST, DIGIT_COST, CHEAP_COST = 0.85, 0.42, 0.45
"""The least tokens of a character in a thin stretch: a letter or mark, a digit, or another."""
FEWEST, FEWEST_COST, SOLID_SHARE = 6, 1.1, 0.95
"""The most different letters and marks that make each cost more beside digits, the least that it
costs then, and the share of characters that are not blank from which on a text is solid."""
FOREIGN_COST, BLANK_COST = 0.95, 0.85
"""The least tokens of a character beyond ASCII, and of a blank beside such a character."""
BASES = set("ACGT")
"""The letters of DNA sequences, which are thin too, but whose pairs have the right cost."""
LINES = [6 * mark for mark in "-=*#./_~" + RULERS]
"""Six equal characters that lines are drawn with; these cost next to nothing."""
NO_RULERS = {ord(each): None for each in RULERS}
CHEAP = b"-=*#./_~"
DIGITS = b"0123456789"
DIGIT_SET = frozenset(DIGITS.decode())

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
    again = {at for at, unit in units.items() if unit <= LONGEST_UNIT}
    repeated = [text[at : at + STRETCH] for at in sorted(again)]
    others = (text[at : at + STRETCH] for at in perhaps_thin(text) if at not in again)
    thin = "".join(filter(is_thin, others))
    slow = STRETCH * (len(units) - len(again))
    cost = sum(map(repeated_cost, repeated))
    return Stretches(thin, least_cost(thin), "".join(repeated), cost, slow)


def perhaps_thin(text: str) -> list[int]:
    """Return the offsets of the stretches that may be thin, judged by one byte per character."""
    if text.isascii():
        some = text.encode()
    else:  # the lowest bits of all other characters, in bytes beyond ASCII
        raw = text.encode("utf-32-le", "surrogatepass")
        beyond = int.from_bytes(raw[1::4].translate(BEYOND_ASCII), "little")
        some = (int.from_bytes(raw[::4], "little") | beyond).to_bytes(len(text), "little")
    some = some.translate(LETTER_BYTES)
    return [
        at
        for at in range(0, len(text) - STRETCH + 1, STRETCH)
        if different(some[at : at + STRETCH]) <= LETTERS + 1
        or different(some[at : at + FEW_TURNS : 2]) <= TURNS
        or different(some[at + 1 : at + FEW_TURNS : 2]) <= TURNS
    ]


def different(some: bytes) -> int:
    """Return the number of different bytes."""
    return len(EACH_BYTE) - len(EACH_BYTE.translate(None, some))


def is_thin(stretch: str) -> bool:
    """Return whether a stretch consists of few different letters, marks or digits."""
    found = set(stretch)
    if letters := found - COMMON:
        return len(letters) <= LETTERS or takes_turns(stretch)
    digits = found & DIGIT_SET
    if len(digits) <= DIGITS_ALONE or sum(map(stretch.count, digits)) <= MOST_DIGITS:
        return True
    return takes_turns(stretch)


def takes_turns(stretch: str) -> bool:
    """Return whether every second character of a stretch is one of at most `TURNS`."""
    return min(len(set(stretch[::2])), len(set(stretch[1::2]))) <= TURNS


def least_cost(thin: str) -> float:
    """Return the least tokens of thin stretches; a word that is known as one token costs one."""
    if not thin or BASES <= set(thin.upper()) <= BASES | {"N", "\n"}:
        return 0.0
    bones = thin.encode("utf-8", "surrogatepass").translate(None, CONTINUING)
    _, in_words = parted(bones)
    known = list(filter(known_words().__contains__, in_words.decode("ascii").split()))
    in_known = len("".join(known).replace(BLANK, ""))
    drawn = thin
    for line in LINES:
        drawn = drawn.replace(line, "")
    text = drawn.translate(NO_RULERS) if any(map(drawn.__contains__, RULERS)) else drawn
    plain = text.encode("ascii", "ignore")
    solid = plain.translate(None, b" \n\t")
    dear = solid.translate(None, CHEAP)
    letters = dear.translate(None, DIGITS)
    foreign = len(text) - len(plain)
    is_solid = len(solid) > len(plain) * SOLID_SHARE
    few = is_solid and len(letters) < len(dear) and len(set(letters)) <= FEWEST
    of_characters = (
        (len(letters) - in_known) * (FEWEST_COST if few else COST)
        + len(known)
        - known.count(BLANK)
        + (len(dear) - len(letters)) * DIGIT_COST
        + (len(solid) - len(dear) + len(drawn) - len(text)) * CHEAP_COST
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
    if letters.isascii() and letters.isalpha() and atom.replace(" ", BLANK) not in known_words():
        return max(1.0, LETTER_COST * len(letters))
    return 1.0


def own_cost(text: str) -> int:
    """Return the tokens beyond the first of all characters that are several tokens each."""
    if text.isascii():
        return 0
    coded = text.translate(weights.CHARACTERS).encode("latin-1", "replace")
    return ones(coded.translate(weights.EXTRA))
