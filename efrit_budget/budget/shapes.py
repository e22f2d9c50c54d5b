"""Compute costs from the bytes of a text: pairs of neighbours, kinds of characters, odd shapes.

For speed, no step looks at characters one by one: tables map all bytes at once, and neighbours are
compared by shifting all bytes, as one large number.
"""

import re
from functools import lru_cache
from typing import NamedTuple

LETTER, DIGIT, MARK, LINE_END, SOLID = 1, 2, 4, 8, 16
"""Kinds of characters as bits: no token reaches from one kind to another."""


def kind_of(lead: int) -> int:
    """Return the kind, as bits, of most characters whose first byte is `lead`; 0 for a space."""
    if chr(lead) in " \t\n\v\f\r":
        return 0 if lead == ord(" ") else LINE_END
    if lead < 0x80:
        return SOLID | (DIGIT if chr(lead).isdigit() else LETTER if chr(lead).isalpha() else MARK)
    if lead in b"\xc2\xcc\xcd\xe2\xee":
        return SOLID | MARK
    return SOLID | (LETTER if 0xC3 <= lead < 0xEE else 0)


KINDS = bytes(map(kind_of, range(256)))
PARTS, SOLIDS, DIGITS = (
    int.from_bytes(bytes([bits]) * 2**18, "little")
    for bits in (LETTER | DIGIT | MARK, SOLID, DIGIT)
)
"""The bits of these kinds, for each character of a text of any length that is measured at once."""
BLANKS = bytes(ord("x" if kind & SOLID else " ") for kind in KINDS)
"""Maps the first byte of a blank to a space, any other byte to x."""
BLANKS_AND_DIGITS = bytes(
    ord("0" if kind == SOLID | DIGIT else "x" if kind else " ") for kind in KINDS
)
NUMBERS = {
    "three digits": b"0" * 3,
    "four digits": b"0" * 4,
    "five digits": b"0" * 5,
    "eight digits": b"0" * 8,
}
GAPS = {"gaps": b"  x", "gaps before digits": b"  0"}
PATTERNS = NUMBERS | GAPS
ZERO_NUMBER, ZERO_MORE = re.compile(rb" 0[0-9][0-9]"), 0.5
"""A number of three digits or more that begins with a zero, behind a space, and its more tokens."""
REFERENCE_MORE = 0.25
"""The tokens to add for a numeric character reference, and again for one behind a space."""
DIGIT_MORE = 0.22
"""The least tokens of a digit behind another digit."""
GAP_BYTES = bytes(
    ord("x" if kind & (LETTER | MARK) and lead != 0xE2 else "-" if kind else " ")
    for lead, kind in enumerate(KINDS)
)
"""Maps bytes that a gap within a line can follow to x, a space to a space, other bytes to -."""
GAPS_SHARE, LINE_ENDS_SHARE, GAP_MORE = 0.04, 0.01, 0.8
DEAR_MARKS = bytes(
    ord("x" if kind & MARK and lead < 0x80 and lead not in b"-=*#./_~" else " ")
    for lead, kind in enumerate(KINDS)
)
"""Maps ASCII marks, except those that lines are drawn with, to x, other bytes to a space."""
MARKS_RUN, MARKS_MORE = b"x" * 8, 1.2
EQUAL = b"BDELUhlnotwz&;[|"
"""Characters of which a pair is cheap, as in words and code, but a long run is not."""
FIRSTS, SECONDS = (bytes(b if b in EQUAL else none for b in range(256)) for none in (0, 1))
EQUAL_RUN, EQUAL_MORE = b"\0" * 4, 1.5
FAR = bytes(2 if byte == 0xC2 else int(byte >= 0xE2) for byte in range(256))
"""Maps the first bytes of characters that no word has beside ASCII letters to bits, others to 0."""
BESIDE = bytes(
    2 if lead >= 0xCC and lead != 0xE2 else int(lead < 0x80 and chr(lead).isalnum())
    for lead in range(256)
)
"""Maps ASCII letters and digits to 1, the first bytes of letters of far scripts to 2."""
TURNS_SHARE, TURN_MORE, BESIDE_MORE = 0.25, 0.15, 0.3
SPACES = bytes(int(byte == ord(" ")) for byte in range(256))
SPACES_SHARE, SPACE_MORE = 0.24, 0.9


class Pairs(NamedTuple):
    """Tables that map each byte to a class, as first or second of a pair, and pairs to costs.

    The classes of both make one byte, the first one's its upper half. `eighths` maps it to a byte
    with as many bits set as the pair costs eighths of a token; `rest` adds 64ths in the same way.
    """

    first: bytes
    second: bytes
    eighths: bytes
    rest: bytes

    def cost(self, coded: bytes) -> float:
        """Return the tokens that probably end between two neighbours, added up over the text."""
        first = int.from_bytes(coded[:-1].translate(self.first), "little")
        second = int.from_bytes(coded.translate(self.second), "little")
        codes = (first << 8 | second).to_bytes(len(coded), "little")[1:]
        return ones(codes.translate(self.eighths)) / 8 + ones(codes.translate(self.rest)) / 64


def ones(coded: bytes) -> int:
    """Return the number of bits that are set."""
    return int.from_bytes(coded, "little").bit_count()


@lru_cache(maxsize=1)
def parts_cost(bones: bytes) -> float:
    """Return the least tokens that end within a text: one for each part that no token exceeds.

    A part is a run of letters, of digits or of marks with the space before it, or of blanks.
    """
    kinds = int.from_bytes(bones.translate(KINDS), "little")
    before = kinds << 8
    begin = ((kinds | before) ^ before) & PARTS
    behind_line = kinds & before << 1 & SOLIDS
    parts = (begin | behind_line).bit_count() + bones.translate(BLANKS).count(b"  x") - 1
    return parts + DIGIT_MORE * (kinds & ~begin & DIGITS).bit_count()


def count_patterns(bones: bytes) -> list[int]:
    """Return how often each of `PATTERNS` occurs in a text."""
    shape = bones.translate(BLANKS_AND_DIGITS)
    numbers = map(shape.count, NUMBERS.values()) if b"000" in shape else [0] * len(NUMBERS)
    return [*numbers, *(map(shape.count, GAPS.values()) if b"  " in shape else [0] * len(GAPS))]


def odd_cost(bones: bytes) -> float:
    """Return the tokens to add for shapes that are far more frequent than in any natural text.

    They are gaps within lines and at their ends, runs of marks or of one letter, and characters
    of two kinds that alternate.
    """
    size = len(bones)
    gaps = bones.translate(GAP_BYTES).count(b"x  ") if b"  " in bones else 0
    line_ends = bones.count(b" \n") - size * LINE_ENDS_SHARE
    marks = bones.translate(DEAR_MARKS).count(MARKS_RUN)
    pairs = int.from_bytes(bones.translate(FIRSTS), "little") << 8
    pairs ^= int.from_bytes(bones.translate(SECONDS), "little")
    equal = pairs.to_bytes(size + 1, "little").count(EQUAL_RUN)
    more = (max(0, gaps - size * GAPS_SHARE) + max(0, line_ends)) * GAP_MORE
    more += marks * MARKS_MORE + equal * EQUAL_MORE
    if b" 0" in bones:
        more += ZERO_MORE * len(ZERO_NUMBER.findall(bones))
    if b"&#" in bones:
        more += REFERENCE_MORE * (bones.count(b"&#") + bones.count(b" &#"))
    if bones.isascii():
        return more
    far = int.from_bytes(bones.translate(FAR), "little")
    turns = (far ^ far << 8).bit_count() - size * TURNS_SHARE
    letters = int.from_bytes(bones.translate(BESIDE), "little")
    both = letters >> 1 & letters << 8 | letters << 7 & letters
    beside = both.bit_count() - size * TURNS_SHARE
    spaces = int.from_bytes(bones.translate(SPACES), "little")
    blanks = (spaces & ~(spaces << 8)).bit_count() - size * SPACES_SHARE
    alternate = max(0, turns) * TURN_MORE + max(0, beside) * BESIDE_MORE
    return more + (alternate + max(0, blanks) * SPACE_MORE)
