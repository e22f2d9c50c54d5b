"""Find stretches of a text in which few pairs of characters occur, and the least they cost.

The cost of a pair is right on the average of many pairs. Where the same few pairs repeat, those
that cost more than assumed are not balanced by others that cost less.
"""

import re
from collections.abc import Mapping
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

It is thin as well if every second character is one of at most `TURNS`.
"""
TURNS = 3
MARKS = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
COMMON = frozenset(" \n0123456789" + MARKS)
LETTER_BYTES = bytes(byte for byte in range(256) if chr(byte) not in COMMON)
"""All bytes but those of `COMMON` characters."""
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
BASES = b"ACGT"
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
    units: dict[int, int] = {}
    some, thin, slow = one_byte_each(text), [], 0
    for at in range(0, len(text) - STRETCH + 1, STRETCH):
        stretch = text[at : at + STRETCH]
        unit = stretch.find(stretch[:LONGEST_UNIT], 1)
        repeats = unit > 0 and stretch.startswith(stretch[unit:])
        if repeats and unit <= LONGEST_UNIT:
            units[at] = unit
            continue
        slow += STRETCH * repeats
        if is_thin(stretch, some[at : at + STRETCH]):
            thin.append(stretch)
    repeated = [repeating_part(text, at, units) for at in units]
    all_thin, cost = "".join(thin), sum(map(repeated_cost, repeated))
    return Stretches(all_thin, least_cost(all_thin), "".join(repeated), cost, slow)


def repeating_part(text: str, at: int, units: Mapping[int, int]) -> str:
    """Return the stretch that repeats its unit, with what repeats it beside a run of stretches."""
    begin, end, unit = at, at + STRETCH, units[at]
    if begin - STRETCH not in units:
        while begin > 0 and text[begin - 1] == text[begin - 1 + unit]:
            begin -= 1
    if end not in units:
        while end < len(text) and text[end] == text[end - unit]:
            end += 1
    return text[begin:end]


def one_byte_each(text: str) -> bytes:
    """Return a byte for each character: the lowest of its code, if not ASCII, above 127."""
    if text.isascii():
        return text.encode()
    raw = text.encode("utf-32-le", "surrogatepass")
    beyond = int.from_bytes(raw[1::4].translate(BEYOND_ASCII), "little")
    return (int.from_bytes(raw[::4], "little") | beyond).to_bytes(len(text), "little")


def is_thin(stretch: str, some: bytes) -> bool:
    """Return whether a stretch consists of few different letters, or of letters by turns.

    `some`, a byte for each character, shows of most stretches that they do not.
    """
    if different(some, LETTER_BYTES) > LETTERS:
        if different(some[::2]) > TURNS and different(some[1::2]) > TURNS:
            return False
    elif stretch.isascii():
        return True
    first, second = set(stretch[::2]), set(stretch[1::2])
    return min(len(first), len(second)) <= TURNS or len((first | second) - COMMON) <= LETTERS


def few_pairs(text: str) -> float:
    """Return 1 if the same pair repeats in an unbroken text, 0 if pairs are as many as usual."""
    middle = text[max(0, (len(text) - PAIRS_READ) // 2) :][:PAIRS_READ]
    if len(text) < STRETCH or middle.count(" ") > BLANKS_OF_RUNS:
        return 0.0
    return max(0.0, 1 - len(set(pairwise(middle))) / FEW_PAIRS)


def least_cost(thin: str) -> float:
    """Return the least tokens of thin stretches; a word that is known as one token costs one."""
    bones = thin.encode("utf-8", "surrogatepass").translate(None, CONTINUING)
    is_dna = not bones.translate(None, b"ACGTNacgtn\n") and different(bones.upper(), BASES) == 4
    if is_dna or not thin:
        return 0.0
    known_words, known_letters = divided(bones).count_known()
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
        (len(letters) - known_letters) * (FEWEST_COST if few else COST)
        + known_words
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
