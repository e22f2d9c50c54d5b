"""Estimate the tokens of a text.

A tokenizer divides a text at some places between two characters. So the estimate adds up, for
each two neighbours, how likely a token ends between them: words that are known to be one token
are not divided, other words by their pairs of letters, everything else by the classes of the two
characters. Characters that are several tokens each are charged for those as well. No text costs
less than the parts that no token exceeds; what is odd, thin or repeated costs more than its pairs.
`tests.benchmarks.fit_estimator` has fitted the figures to Claude's tokenizer.
"""

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
"""The characters of a block, which are counted at once, and the number of blocks in the cache."""
NEARLY_ALL = 0.95
"""The share of a block from which on its odd stretches are taken for the whole block."""
SLOW_MORE = 0.085
"""The share by which the cost of stretches is raised that repeat only long units."""
DEAREST = 15
"""The most tokens of one character: U+FDFA stands for a sentence."""
SENTENCE, SENTENCE_MORE = "\ufdfa", 6
"""The character U+FDFA, and its tokens above the most that the table of characters can state."""
WORD_LEADS, WORD_MORE = (b"\xe3\x8c", b"\xe3\x8d", b"\xe3\x8e", b"\xe3\x8f", b"\xef\xac"), 0.5
"""The first bytes of characters that stand for several letters, and the tokens to add for each."""
ASCII = bytes(range(0x80))
ASCII_BUT_BLANK = ASCII.replace(b" ", b"")
ONE_TOKEN = bytes(code for code in range(0x100) if not weights.EXTRA[code])
BORDERS_SHARE, CYRILLIC_SHARE = 1.01, 1.0
"""Factors for the fitted costs of borders and of Cyrillic letters, as other texts cost more."""
CYRILLIC_LEADS = (b"\xd0", b"\xd1")
"""The first bytes of Cyrillic letters in UTF-8."""
PICTURES, PICTURE_MORE = b"\xe2\xee\xef\xf0\xf1\xf2\xf3\xf4", 3
"""The first bytes of characters that may share tokens with neighbours, and tokens to deduct."""
UNBROKEN_COST = 0.13
"""The tokens to add for each letter of a run that is a word of no language."""
FEW_LETTERS_COST = 0.025
"""The tokens to add for each character of unknown words that consist of few letters."""
LEAST_SHARE = 1.01
"""The factor by which the least cost of a text is raised."""
WORDS_LEAST, PIECES_LEAST = 0.6, 0.6
"""The least cost of unknown words, as a share of their pairs' cost, and of each division."""
RULER = "\x01"
"""The character that replaces sixteen, or four, equal characters that lines are drawn with."""
MARK_LEADS = (b"\xcc", b"\xcd")
"""The first bytes, in UTF-8, of marks that are put on letters."""
MANY_MARKS = re.compile(r"[^\w\s\x00-\x7f]{16}")


def sample(text: str) -> str:
    """Return a short text whole, or slices of a longer one from random places."""
    if len(text) <= SAMPLE:
        return text
    size = SAMPLE // SLICES
    step = len(text) / SLICES
    starts = (int((at + random.random()) * step) for at in range(SLICES))  # noqa: S311
    return "".join([text[start : start + size] for start in starts])


def foreign_classes(raw: bytes) -> bytes:
    """Return the class of each character beyond ASCII; keep spaces between Cyrillic words."""
    has_cyrillic = any(lead in raw for lead in CYRILLIC_LEADS)
    letters = raw.translate(None, ASCII_BUT_BLANK if has_cyrillic else ASCII)
    text = letters.decode("utf-8", "surrogatepass")
    return text.translate(weights.CHARACTERS).encode("latin-1", "replace")


def foreign_cost(classes: bytes, bones: bytes) -> float:
    """Return the tokens that end between characters of which one or both are beyond ASCII.

    At least one ends behind each character that is several tokens.
    """
    cyrillic = classes.translate(None, weights.NOT_CYRILLIC)
    share = CYRILLIC_SHARE if cyrillic else BORDERS_SHARE
    ends = share * (weights.BORDERS.cost(bones) + weights.CYRILLIC.cost(cyrillic))
    return max(ends, len(classes.translate(None, ONE_TOKEN)))


def measure(text: str) -> float:
    """Return the tokens that probably end within a text."""
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
    """Return a text, also in UTF-8, with drawn lines shortened and marks joined to letters."""
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
    """Return the tokens that end within a block, and those to add for its odd stretches.

    The cache serves texts that are counted again with only their last block changed.
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

    The whole text is read. The same text always gives the same number, never above `DEAREST` for
    each character. A further line never lowers the number.
    """
    if not text:
        return 0
    blocks = (text[max(0, at - 1) : at + BLOCK] for at in range(0, len(text), BLOCK))
    return min(ceil(1 + sum(map(cost, blocks))), DEAREST * len(text))


def sampled(text: str) -> int:
    """Return roughly the tokens of a text, in the time it takes to read `SAMPLE` characters of it.

    Use it to find where to cut a text. A text that is delivered or stored needs `estimate`.
    """
    if len(text) <= SAMPLE:
        return estimate(text)
    read = sample(text)
    return min(ceil((1 + cost(read)) * len(text) / len(read)), DEAREST * len(text))
