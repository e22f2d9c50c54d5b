"""Stretches of a text in which few pairs of characters occur, and the least that they cost.

What a pair costs holds on the average over many pairs. Where the same few come again and again,
dear ones are not made up for by cheap ones.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import filterfalse

from efrit_budget.budget import weights
from efrit_budget.budget.pairs import ones
from efrit_budget.budget.words import BLANK, known_words, skeleton, words

RULERS = "─═█▀▄░■—…\u3000．"  # noqa: RUF001
"""Characters that lines are drawn with, of which several are one token."""
STRETCH, FIRST, LETTERS = 256, 64, 12
"""A stretch of so many characters is thin where it has no more letters than so many.

Where there are none, a quarter may be digits, or so many different ones.
"""
DIGITS_ALONE, TURNS = 5, 3
MARKS = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
COMMON = frozenset(" \n0123456789" + MARKS)
COST, DIGIT_COST, CHEAP_COST = 0.85, 0.42, 0.45
"""The least a character of a thin stretch costs: a letter or mark, a digit, and others."""
FOREIGN_COST, BLANK_COST = 0.95, 0.5
"""The same of what lies beyond ASCII, and of a blank beside it."""
BASES = set("ACGT")
"""A sequence of these is as thin, and what its pairs cost is known."""
LINES = "-=*#./_~" + RULERS
DRAWN_OUT = re.compile(rf"([{re.escape(LINES)}])\1\1+")
BLANKS = {ord(each): None for each in " \n\t"}
CHEAP = {ord(each): None for each in LINES}
DIGIT_SET = frozenset("0123456789")
DIGITS = {ord(each): None for each in "0123456789"}

LONGEST_UNIT = 32
"""Characters that come again and again, at the most."""
ATOMS = re.compile(
    r" ?[A-Za-z]+|[0-9]{1,2}| ?([-=*#./_~])\1{0,31}|([─═█—…．])\2{0,7}|([▀▄░■])\3{0,3}"  # noqa: RUF001
    r"| ?[!-~]| +|\u3000+|[\n\t]{1,16}|.",
    re.DOTALL,
)
LETTER_COST = 0.9


def stretches(text: str) -> list[tuple[str, float]]:
    """The thin stretches of a text put together, those that repeat too, and what each must cost."""
    parts = [text[at : at + STRETCH] for at in range(0, len(text) - STRETCH + 1, STRETCH)]
    again = [part for part in parts if repeats(part)]
    others = filterfalse(set(again).__contains__, parts) if again else parts
    few = filter(is_thin, others)
    thin, repeated = "".join(few), "".join(again)
    return [(thin, least_cost(thin)), (repeated, sum(map(repeated_cost, again)))]


def repeats(stretch: str) -> bool:
    """Return whether the same few characters repeat."""
    unit = stretch.find(stretch[:LONGEST_UNIT], 1, 2 * LONGEST_UNIT)
    return unit > 0 and stretch.startswith(stretch[unit:])


def is_thin(stretch: str) -> bool:
    """Return whether a stretch repeats few letters or marks."""
    if len(set(stretch[:FIRST]) - COMMON) > LETTERS:
        return takes_turns(stretch)
    found = set(stretch)
    if letters := found - COMMON:
        return len(letters) <= LETTERS or takes_turns(stretch)
    is_numbers = len(stretch.translate(DIGITS)) < STRETCH * 3 // 4
    return len(found & DIGIT_SET) <= DIGITS_ALONE or not is_numbers


def takes_turns(stretch: str) -> bool:
    """Return whether every second character is one of a few."""
    return any(
        len(set(stretch[at : 16 + at : 2])) <= TURNS and len(set(stretch[at::2])) <= TURNS
        for at in (0, 1)
    )


def least_cost(thin: str) -> float:
    """The least that thin stretches cost; words that are one token cost no more."""
    if BASES <= set(thin.upper()) <= BASES | {"N", "\n"}:
        return 0.0
    drawn = DRAWN_OUT.sub("", thin)
    blanks = len(drawn) - len(dear := drawn.translate(BLANKS))
    cheap = len(dear) - len(dear := dear.translate(CHEAP))
    digits = len(dear) - len(dear := dear.translate(DIGITS))
    foreign = len(dear) - len(plain := dear.encode("ascii", "ignore"))
    known = [word for word in words(plain_bones(thin)) if word in known_words() and word != BLANK]
    in_known = sum(map(len, known)) - "".join(known).count(BLANK)
    return (
        (len(plain) - in_known) * COST
        + len(known)
        + digits * DIGIT_COST
        + cheap * CHEAP_COST
        + foreign * FOREIGN_COST
        + min(blanks, foreign) * BLANK_COST
        + own_cost(dear)
    )


def plain_bones(text: str) -> bytes:
    """The bones of a text."""
    return skeleton(text, text.encode("utf-8", "surrogatepass"))


@lru_cache(maxsize=256)
def repeated_cost(stretch: str) -> float:
    """Return the cost of a stretch whose unknown words, marks and foreign characters never join."""
    return sum(atom_cost(match[0]) for match in ATOMS.finditer(stretch)) + own_cost(stretch)


def atom_cost(atom: str) -> float:
    """Return the cost of a part that always begins a token."""
    letters = atom.lstrip(" ")
    if letters.isascii() and letters.isalpha() and atom.replace(" ", BLANK) not in known_words():
        return max(1.0, LETTER_COST * len(letters))
    return 1.0


def own_cost(text: str) -> int:
    """Return the cost, beyond the first token, of characters of several tokens."""
    classes = text.translate(weights.CHARACTERS).encode("latin-1", "replace")
    return 0 if text.isascii() else ones(classes.translate(weights.EXTRA))
