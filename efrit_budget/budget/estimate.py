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
from functools import cache, lru_cache
from math import ceil
from unicodedata import normalize

from efrit_budget.budget import weights
from efrit_budget.budget.shapes import PATTERNS, count_patterns, odd_cost, ones, parts_cost
from efrit_budget.budget.thin import RULERS, few_pairs, stretches
from efrit_budget.budget.words import CONTINUING, divided

SAMPLE = 2048
SLICES = 16
BLOCK, REMEMBERED_BLOCKS = 8191, 64
"""The characters that are counted at once, and the number of such blocks in the cache.

With the character before it, a block has the length of 32 stretches.
"""
NEARLY_ALL = 0.95
"""The share of a block from which on its odd stretches are taken for the whole block."""
SLOW_MORE = 0.085
"""The share by which the cost of stretches is raised that repeat only long units."""
FEW_PAIRS_MORE = 0.25
"""The share by which the cost of a block would be raised in which the same pair repeats alone."""
DEAREST = 15
"""The most tokens of one character: U+FDFA stands for a sentence."""
SENTENCE, SENTENCE_MORE = "\ufdfa", 6
"""The character U+FDFA, and its tokens above the most that the table of characters can state."""
WORD_FIRST, WORD_PAGES, WORD_MORE = b"\xe3\xef", (b"\x32", b"\x33", b"\xfb"), 0.5
"""The first bytes in UTF-8, and the upper ones in UTF-16, of characters that stand for several
letters, and the tokens to add for each."""
FEW_PAGES = 6
"""The most different upper bytes of characters for which tables are faster than a look-up."""
EACH_BYTE = bytes(range(256))
NO_SURROGATE = bytes(byte for byte in EACH_BYTE if not 0xD8 <= byte < 0xE0)
ASCII = bytes(range(0x80))
ASCII_BUT_BLANK = ASCII.replace(b" ", b"")
ONE_TOKEN = bytes(code for code in range(0x100) if not weights.EXTRA[code])
BORDERS_SHARE, CYRILLIC_SHARE = 1.01, 1.01
"""Factors for the fitted costs of borders and of Cyrillic letters, as other texts cost more."""
CYRILLIC_LEADS = (b"\xd0", b"\xd1")
"""The first bytes of Cyrillic letters in UTF-8."""
PICTURES, PICTURE_MORE = b"\xe2\xee\xef\xf0\xf1\xf2\xf3\xf4", 3
"""The first bytes of characters that may share tokens with neighbours, and tokens to deduct."""
UNBROKEN_COST = 0.13
"""The tokens to add for each letter of a run that is a word of no language."""
CAPITALS, ONE_CAPITAL = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", 0.6
MANY_PIECES, MANY_PIECES_COST = 0.15, 1.2
"""The pieces for each character above which one capital, which has the share `ONE_CAPITAL` of all,
divides more than words, and the tokens to add for each of those."""
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
    wide = text.encode("utf-16-le", "surrogatepass")
    low, pages = wide[::2], wide[1::2]
    used = EACH_BYTE.translate(None, EACH_BYTE.translate(None, pages))
    if len(used) > FEW_PAGES or used.translate(None, NO_SURROGATE):
        return text.translate(weights.CHARACTERS).encode("latin-1", "replace")
    found = 0
    for page in used:
        here = int.from_bytes(pages.translate(only(page)), "little")
        found |= here & int.from_bytes(low.translate(classes_of(page)), "little")
    return found.to_bytes(len(text), "little")


@cache
def only(byte: int) -> bytes:
    """Return the table that maps a byte to 255, and all others to 0."""
    return bytes(byte) + b"\xff" + bytes(0xFF - byte)


@cache
def classes_of(page: int) -> bytes:
    """Return the classes of the 256 characters whose code has `page` as its upper byte."""
    return weights.CHARACTERS[page << 8 : page + 1 << 8].encode("latin-1", "replace")


def has_one_capital(bones: bytes) -> bool:
    """Return whether most capitals of a text are the same letter."""
    counts = [bones.count(capital) for capital in CAPITALS]
    return max(counts) > ONE_CAPITAL * sum(counts)


def measure(text: str) -> float:
    """Return the tokens that probably end within a text."""
    text, raw = joined(text)
    bones = raw.translate(None, CONTINUING)
    unknown = divided(bones)
    in_words = weights.UNKNOWN.cost(unknown.rest) + FEW_LETTERS_COST * unknown.of_few
    odd = odd_cost(bones)
    found = weights.JOINTS.cost(bones) + in_words + odd
    found += weights.COSTS["pieces"] * unknown.pieces + UNBROKEN_COST * unknown.unbroken
    if unknown.pieces > MANY_PIECES * len(bones) and has_one_capital(bones[:SAMPLE]):
        found += MANY_PIECES_COST * (unknown.pieces - MANY_PIECES * len(bones))
    counted = zip(PATTERNS, count_patterns(bones), strict=True)
    found += sum(weights.COSTS[name] * number for name, number in counted)
    least = parts_cost(bones) + odd + WORDS_LEAST * in_words + PIECES_LEAST * unknown.pieces
    if len(bones) == len(raw):
        return max(found, LEAST_SHARE * least)
    classes = foreign_classes(raw)
    own: float = ones(classes.translate(weights.EXTRA)) + SENTENCE_MORE * text.count(SENTENCE)
    if any(map(raw.__contains__, WORD_FIRST)):
        upper = text.encode("utf-16-le", "surrogatepass")[1::2]
        own += WORD_MORE * sum(map(upper.count, WORD_PAGES))
    pictures = len(bones) - len(bones.translate(None, PICTURES))
    least += max(0, own - PICTURE_MORE * pictures)
    cyrillic = classes.translate(None, weights.NOT_CYRILLIC)
    borders = weights.BORDERS.cost(bones) + weights.CYRILLIC.cost(cyrillic)
    borders *= CYRILLIC_SHARE if cyrillic else BORDERS_SHARE
    several = len(classes.translate(None, ONE_TOKEN))  # a token ends behind each of these
    return max(found + own + max(borders, several), LEAST_SHARE * least)


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
    share = SLOW_MORE * odd.slow / len(block)
    if not odd.thin + odd.repeated:
        share = max(share, FEW_PAIRS_MORE * few_pairs(block))
    return found + max(more, share * found)


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
