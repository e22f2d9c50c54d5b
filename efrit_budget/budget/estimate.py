"""How many tokens a text costs.

A tokenizer divides a text at some places between two characters. So the estimate adds up, for
each two neighbours, how likely a token ends between them: words that are known to be one token
are not divided, other words by their pairs of letters, everything else by the classes of the two
characters. Characters that are several tokens each are charged for those as well. No text costs
less than the parts that no token exceeds; what is odd, thin or repeated costs more than its pairs.
`tests.benchmarks.fit_estimator` has fitted the figures to Claude's tokenizer.
"""

from __future__ import annotations

import random
import re
from functools import lru_cache
from math import ceil
from unicodedata import normalize

from efrit_budget.budget import weights
from efrit_budget.budget.shapes import BLANKS_AND_DIGITS, PATTERNS, odd_cost, ones, parts_cost
from efrit_budget.budget.thin import RULERS, stretches
from efrit_budget.budget.words import CONTINUING, divided, made_of_few

SAMPLE = 2048
SLICES = 16
BLOCK, REMEMBERED_BLOCKS = 8192, 64
"""Characters that are counted at once, and how many such blocks are remembered."""
NEARLY_ALL = 0.95
"""The share of a block from which on a stretch of it is taken for the block."""
SLOW_MORE = 0.085
"""The share that stretches cost more which repeat too slowly to be looked at by themselves."""
DEAREST = 15
"""The most tokens of one character: U+FDFA stands for a sentence."""
SENTENCE, SENTENCE_MORE = "\ufdfa", 6
"""It, and what it costs above the most that the table of characters can say."""
WORD_LEADS, WORD_MORE = (b"\xe3\x8c", b"\xe3\x8d", b"\xe3\x8e", b"\xe3\x8f", b"\xef\xac"), 0.5
"""The first bytes of characters that stand for several letters, and what each costs more."""
ASCII = bytes(range(0x80))
ASCII_BUT_BLANK = ASCII.replace(b" ", b"")
ONE_TOKEN = bytes(code for code in range(0x100) if not weights.EXTRA[code])
BORDERS_SHARE, CYRILLIC_SHARE = 1.01, 1.0
"""What borders and Cyrillic letters cost more in texts unlike those of the fit."""
CYRILLIC_LEADS = (b"\xd0", b"\xd1")
"""The first bytes of Cyrillic letters in UTF-8."""
PICTURES, PICTURE_MORE = b"\xe2\xee\xef\xf0\xf1\xf2\xf3\xf4", 3
"""The first bytes of characters that may be a token with others, though one alone is several."""
UNBROKEN_COST = 0.13
"""What a letter costs more in a run that is a word of no language."""
FEW_LETTERS_COST = 0.025
"""What a letter costs more in unknown words that are made of few letters."""
LEAST_SHARE = 1.01
"""What the least of a text costs more than it must."""
WORDS_LEAST, PIECES_LEAST = 0.6, 0.6
"""The share of their pairs that unknown words cost at the least, and a division at capitals."""
RULER = "\x01"
"""Characters of which sixteen, or four, count as one in a text of many kinds."""
MARK_LEADS = (b"\xcc", b"\xcd")
"""The first bytes of marks on letters in UTF-8."""
MANY_MARKS = re.compile(r"[^\w\s\x00-\x7f]{16}")


def sample(text: str) -> str:
    """Return a text of a few KiB, or of a longer one slices from places nobody can foresee."""
    if len(text) <= SAMPLE:
        return text
    size = SAMPLE // SLICES
    step = len(text) / SLICES
    starts = (int((at + random.random()) * step) for at in range(SLICES))  # noqa: S311
    return "".join([text[start : start + size] for start in starts])


def foreign_classes(raw: bytes) -> bytes:
    """Return the class of each character beyond ASCII; words of Cyrillic letters stay apart."""
    has_cyrillic = any(lead in raw for lead in CYRILLIC_LEADS)
    letters = raw.translate(None, ASCII_BUT_BLANK if has_cyrillic else ASCII)
    text = letters.decode("utf-8", "surrogatepass")
    return text.translate(weights.CHARACTERS).encode("latin-1", "replace")


def foreign_cost(classes: bytes, bones: bytes) -> float:
    """Return the cost of dividing a text at characters beyond ASCII.

    A token ends behind each that is several tokens.
    """
    cyrillic = classes.translate(None, weights.NOT_CYRILLIC)
    share = CYRILLIC_SHARE if cyrillic else BORDERS_SHARE
    ends = share * (weights.BORDERS.cost(bones) + weights.CYRILLIC.cost(cyrillic))
    return max(ends, len(classes.translate(None, ONE_TOKEN)))


def measure(text: str) -> float:
    """Return the tokens that end within a text."""
    text, raw = joined(text)
    bones = raw.translate(None, CONTINUING)
    unknown = divided(bones)
    in_words = weights.UNKNOWN.cost(unknown.rest) + FEW_LETTERS_COST * made_of_few(unknown.rest)
    odd = odd_cost(bones)
    found = weights.JOINTS.cost(bones) + in_words + odd
    found += weights.COSTS["pieces"] * unknown.pieces + UNBROKEN_COST * unknown.unbroken
    shape = bones.translate(BLANKS_AND_DIGITS)
    found += sum(weights.COSTS[name] * shape.count(each) for name, each in PATTERNS.items())
    least = parts_cost(bones) + odd + WORDS_LEAST * in_words + PIECES_LEAST * unknown.pieces
    if len(bones) == len(raw):
        return max(found, LEAST_SHARE * least)
    classes = foreign_classes(raw)
    own: float = ones(classes.translate(weights.EXTRA)) + SENTENCE_MORE * text.count(SENTENCE)
    own += WORD_MORE * sum(map(raw.count, WORD_LEADS))
    pictures = len(bones) - len(bones.translate(None, PICTURES))
    least += max(0, own - PICTURE_MORE * pictures)
    return max(found + own + foreign_cost(classes, bones), LEAST_SHARE * least)


def joined(text: str) -> tuple[str, bytes]:
    """Return a text with drawn-out lines as their tokens and letters with their marks as one.

    The second is the same in UTF-8.
    """
    if text.isascii():
        return text, text.encode()
    for mark in RULERS:
        if mark in text and mark * 4 in text:
            text = text.replace(mark * 16, RULER).replace(mark * 4, RULER)
    raw = text.encode("utf-8", "surrogatepass")
    if any(lead in raw for lead in MARK_LEADS) and not MANY_MARKS.search(text):
        text = normalize("NFC", text)
        raw = text.encode("utf-8", "surrogatepass")
    return text, raw


@lru_cache(maxsize=REMEMBERED_BLOCKS)
def cost(block: str) -> float:
    """Return the tokens that end within a block, and what its odd stretches cost more.

    The same texts are counted again and again, the last block changed.
    """
    found = measure(block)
    odd = stretches(block)
    more = 0.0
    for text, least in (odd.thin, odd.thin_cost), (odd.repeated, odd.repeated_cost):
        if text:
            is_all = len(text) > len(block) * NEARLY_ALL
            more += max(0.0, least - (found if is_all else measure(text)))
    return found + max(more, SLOW_MORE * found * odd.slow / len(block))


def estimate(text: str) -> int:
    """Return the tokens a text probably costs: 0 if it is empty, else at least 1.

    All of it is read. The same text always gives the same number, never above `DEAREST` for each
    character. A further line never lowers the number.
    """
    if not text:
        return 0
    blocks = (text[max(0, at - 1) : at + BLOCK] for at in range(0, len(text), BLOCK))
    return min(ceil(1 + sum(map(cost, blocks))), DEAREST * len(text))


def sampled(text: str) -> int:
    """Return roughly the tokens of a text, in the time it takes to read `SAMPLE` characters of it.

    It is for looking where to cut. What is delivered or stored is counted by `estimate`.
    """
    if len(text) <= SAMPLE:
        return estimate(text)
    read = sample(text)
    return min(ceil((1 + cost(read)) * len(text) / len(read)), DEAREST * len(text))
