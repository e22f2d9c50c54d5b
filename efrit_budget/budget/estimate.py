"""How many tokens a text costs.

A tokenizer divides a text at some places between two characters. So the estimate adds up, for
each two neighbours, how likely a token ends between them: words that are known to be one token
are not divided, other words by their pairs of letters, everything else by the classes of the two
characters. Characters that are several tokens each are charged for those as well.
`tests.benchmarks.fit_estimator` has fitted the figures to Claude's tokenizer.

No step looks at characters one by one: tables map whole texts of bytes, and a text is laid over
itself, a place further, as one large number.
"""

from __future__ import annotations

import random
import re
from functools import lru_cache
from math import ceil
from unicodedata import normalize

from efrit_budget.budget import thin, weights
from efrit_budget.budget.pairs import ones
from efrit_budget.budget.words import divided, skeleton

SAMPLE = 2048
SLICES = 16
DEAREST = 15
"""The most tokens of one character: U+FDFA stands for a sentence."""
SENTENCE, SENTENCE_MORE = "\ufdfa", 6
"""It, and what it costs above the most that the table of characters can say."""
ASCII = bytes(range(0x80))
ASCII_BUT_BLANK = ASCII.replace(b" ", b"")
ONE_TOKEN = bytes(code for code in range(0x100) if not weights.EXTRA[code])
BORDERS_SHARE = 1.01
"""What borders cost more in texts unlike those that the figures were fitted to."""
CYRILLIC_LEADS = (b"\xd0", b"\xd1")
"""The first bytes of Cyrillic letters in UTF-8."""
UNBROKEN_COST = 0.06
"""What a letter costs more in a run that is a word of no language."""
RULER = "\x01"
RULERS = thin.RULERS
"""Characters of which sixteen, or four, count as one in a text of many kinds."""

MARK_LEADS = (b"\xcc", b"\xcd")
"""The first bytes of marks on letters in UTF-8."""
MANY_MARKS = re.compile(r"[^\w\s\x00-\x7f]{16}")

REMEMBERED = range(4_000, 400_000)
"""Characters of the texts of which all but the end is remembered while figures behind it vary."""
END, STEP = 512, 2048
"""Characters of the end, at the least, and by how many what is remembered grows at once."""

BLANKS_AND_DIGITS = bytes(
    ord("0") if chr(byte) in "0123456789" else ord(" ") if byte == ord(" ") else ord("x")
    for byte in range(256)
)
PATTERNS = {
    "three digits": b"0" * 3,
    "four digits": b"0" * 4,
    "five digits": b"0" * 5,
    "eight digits": b"0" * 8,
    "gaps": b"  x",
    "gaps before digits": b"  0",
}


def sample(text: str) -> str:
    """A text of a few KiB as it is; of a longer one slices from places that nobody can foresee."""
    if len(text) <= SAMPLE:
        return text
    size = SAMPLE // SLICES
    step = len(text) / SLICES
    starts = (int((at + random.random()) * step) for at in range(SLICES))  # noqa: S311
    return "".join([text[start : start + size] for start in starts])


def counted(bones: bytes) -> dict[str, int]:
    """Count the patterns that are charged by themselves."""
    shape = bones.translate(BLANKS_AND_DIGITS)
    return {name: shape.count(pattern) for name, pattern in PATTERNS.items()}


def foreign(raw: bytes) -> bytes:
    """The class of each character beyond ASCII; words of Cyrillic letters stay apart."""
    has_cyrillic = any(lead in raw for lead in CYRILLIC_LEADS)
    letters = raw.translate(None, ASCII_BUT_BLANK if has_cyrillic else ASCII)
    text = letters.decode("utf-8", "surrogatepass")
    return text.translate(weights.CHARACTERS).encode("latin-1", "replace")


def foreign_cost(text: str, raw: bytes, bones: bytes) -> float:
    """Return the cost of the characters beyond ASCII, and of dividing the text at them.

    A token ends behind each that is several tokens.
    """
    classes = foreign(raw)
    own = ones(classes.translate(weights.EXTRA)) + SENTENCE_MORE * text.count(SENTENCE)
    cyrillic = classes.translate(None, weights.NOT_CYRILLIC)
    share = 1 if cyrillic else BORDERS_SHARE
    ends = share * weights.BORDERS.cost(bones) + weights.CYRILLIC.cost(cyrillic)
    several = len(classes.translate(None, ONE_TOKEN))
    return own + max(ends, several)


def measure(text: str) -> float:
    """The tokens that end within a text."""
    text = joined(text)
    raw = text.encode("utf-8", "surrogatepass")
    bones = skeleton(text, raw)
    unknown = divided(bones)
    found = weights.JOINTS.cost(bones) + weights.UNKNOWN.cost(unknown.rest)
    found += weights.COSTS["pieces"] * unknown.pieces + UNBROKEN_COST * unknown.unbroken
    found += sum(weights.COSTS[name] * number for name, number in counted(bones).items())
    return found if bones is raw else found + foreign_cost(text, raw, bones)


def joined(text: str) -> str:
    """The text with drawn-out lines as the tokens they are, and letters with their marks as one."""
    if text.isascii():
        return text
    for mark in RULERS:
        if mark in text and mark * 4 in text:
            text = text.replace(mark * 16, RULER).replace(mark * 4, RULER)
    raw = text.encode("utf-8", "surrogatepass")
    has_marks = any(lead in raw for lead in MARK_LEADS)
    return normalize("NFC", text) if has_marks and not MANY_MARKS.search(text) else text


def thin_cost(text: str) -> float:
    """Return the cost of thin stretches beyond that of their pairs."""
    return sum(max(0.0, least - measure(some)) for some, least in thin.stretches(text) if least)


def cost(text: str) -> float:
    """The tokens of a text that is not empty."""
    return 1 + measure(text) + thin_cost(text)


@lru_cache(maxsize=8)
def remembered_cost(text: str) -> float:
    """The same; the same few texts are counted again and again, a figure behind them changed."""
    return cost(text)


def estimate(text: str) -> int:
    """Return the tokens a text probably costs: 0 if it is empty, else at least 1.

    All of it is read. The same text always gives the same number, never above `DEAREST` for each
    character. A further line never lowers the number.
    """
    if not text:
        return 0
    cut = text.find("\n", (len(text) - END) // STEP * STEP) if len(text) in REMEMBERED else -1
    if cut < 2:
        likely = cost(text)
    else:
        # Nothing that is charged reaches over an end of line by more than two characters.
        behind = text[cut - 2 :]
        likely = remembered_cost(text[:cut]) + measure(behind) - measure(behind[:2])
    return min(ceil(likely), DEAREST * len(text))


def sampled(text: str) -> int:
    """Roughly the tokens of a text, in the time it takes to read `SAMPLE` characters of it.

    For looking where to cut. What is delivered or stored is counted by `estimate`.
    """
    if len(text) <= SAMPLE:
        return estimate(text)
    read = sample(text)
    return min(ceil(cost(read) * len(text) / len(read)), DEAREST * len(text))
