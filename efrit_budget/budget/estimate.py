"""How many tokens a text costs, judged by looking at a sample of it.

Each character of the sample becomes a letter for its class. In that shape a few dozen patterns
are counted: where words, capitals, numbers and punctuation begin, how long their runs are, ends
of lines, letters that are rare in words, the characters of other scripts. Each occurrence has a
cost in tokens, which `tests.benchmarks.fit_estimator` has fitted to Claude's tokenizer.
"""

from __future__ import annotations

from math import ceil

from efrit_budget.budget.weights import COMMON_HAN, COMMON_HANGUL, COSTS

SAMPLE = 2048
SLICES = 16
# A tokenizer of bytes gives a character no more tokens than UTF-8 gives it bytes, unless it first
# takes a rare compatibility character apart.
DEAREST = 4

# Classes by block of the basic plane. What is in none is a symbol, `S`.
BLOCKS: tuple[tuple[int, int, str], ...] = (
    (0x0000, 0x0020, "n"),
    (0x0021, 0x007F, "p"),
    (0x0080, 0x00C0, "s"),
    (0x00C0, 0x0250, "e"),
    (0x0370, 0x0400, "g"),
    (0x0400, 0x0410, "u"),
    (0x0410, 0x0450, "c"),
    (0x0450, 0x0530, "u"),
    (0x0530, 0x0590, "j"),
    (0x0590, 0x0600, "h"),
    (0x0600, 0x0780, "r"),
    (0x0780, 0x0900, "i"),
    (0x0900, 0x0980, "d"),
    (0x0980, 0x0A00, "j"),
    (0x0A00, 0x0B80, "i"),
    (0x0B80, 0x0E00, "j"),
    (0x0E00, 0x0E80, "t"),
    (0x0E80, 0x1000, "i"),
    (0x1000, 0x1100, "j"),
    (0x1100, 0x1E00, "i"),
    (0x1E00, 0x1F00, "v"),
    (0x1F00, 0x2000, "g"),
    (0x2000, 0x2070, "s"),
    (0x2500, 0x2580, "x"),
    (0x3000, 0x3040, "s"),
    (0x3040, 0x3100, "k"),
    (0x3400, 0xA000, "Z"),
    (0xA000, 0xAC00, "i"),
    (0xAC00, 0xD7B0, "G"),
    (0xF900, 0xFB00, "Z"),
    (0xFF00, 0xFFF0, "s"),
)
# Punctuation that is drawn out into rulers keeps its own class.
MARKS = "-=*#./_~"
SINGLES: tuple[tuple[str, str], ...] = (
    ("aeiou", "a"),
    ("bcdfghlmnprst", "b"),
    ("jkqvwxyz", "q"),
    ("AEIOU", "A"),
    ("BCDFGHLMNPRST", "B"),
    ("JKQVWXYZ", "Q"),
    ("0123456789", "0"),
    (" ", " "),
    ("\t", "\t"),
    ("\u0401\u0451", "c"),
    (COMMON_HAN, "C"),
    (COMMON_HANGUL, "H"),
    *((mark, mark) for mark in MARKS),
)


def class_table() -> str:
    """The class of each character of the basic plane, at its code's place."""
    table = ["S"] * 0x10000
    for start, stop, letter in BLOCKS:
        table[start:stop] = letter * (stop - start)
    for characters, letter in SINGLES:
        for character in characters:
            table[ord(character)] = letter
    return "".join(table)


def reduced(keep: dict[str, str], rest: str) -> bytes:
    """A table for `bytes.translate` that maps some classes, and all others to one letter."""
    table = bytearray(rest.encode() * 256)
    for classes, letter in keep.items():
        for each in classes:
            table[ord(each)] = ord(letter)
    return bytes(table)


CLASSES = class_table()
LOWER, UPPER = "abqev", "ABQ"
ASCII = b"abqABQ0pn \t" + MARKS.encode()
RULERS = [(mark.encode() * 4, b"R") for mark in MARKS]
LETTERS = reduced({LOWER: "a", UPPER: "A"}, " ")
CONSONANTS = reduced({"bq": "b", "BQ": "B"}, " ")
BLANKS = reduced({" ": " ", "n\t": "n"}, "x")
SCRIPTS = reduced({each: each for each in "gcuhrdij"}, " ")
RUNS = reduced(
    {
        LOWER + UPPER: "a",
        "0": "0",
        "p" + MARKS: "p",
        " ": " ",
        "n": "n",
        "\t": "t",
        "R": "R",
        "x": "x",
    },
    "|",
)

# What is charged, by the view of the sample in which it shows: a name and its pattern.
PATTERNS: dict[str, dict[str, bytes]] = {
    "words": {
        "words": b" a",
        "fifteen letters": b"a" * 15,
        "capitals": b" A",
        "twelve capitals": b"A" * 12,
    },
    "runs": {
        "numbers after a space": b" 0",
        "numbers after punctuation": b"p0",
        "numbers after a letter": b"a0",
        "two digits": b"0" * 2,
        "three digits": b"0" * 3,
        "four digits": b"0" * 4,
        "six digits": b"0" * 6,
        "twelve digits": b"0" * 12,
        "marks": b"p",
        "eight marks": b"p" * 8,
        "marks after a space": b" p",
        "marks after a digit": b"0p",
        "marks after a letter": b"ap",
        "marks at a line's start": b"np",
        "rulers": b"R",
        "boxes after a space": b" x",
        "boxes at a line's start": b"nx",
        "words after punctuation": b"pa",
        "words after a digit": b"0a",
        "words at a line's start": b"na",
        "words after a tab": b"ta",
    },
    "blanks": {
        "wide gaps": b"x  ",
        "sixteen spaces": b" " * 16,
        "ends of lines": b"xn",
        "ends of lines after a blank": b"x n",
        "empty lines": b"nn",
    },
    "consonants": {"consonants in a row": b"bbb"},
    "shape": {"rare letters": b"q", "rare capitals": b"Q"},
    "foreign": {
        "accents": b"e",
        "Vietnamese": b"v",
        "Greek": b"g",
        "Cyrillic": b"c",
        "Cyrillic, not Russian": b"u",
        "Hebrew": b"h",
        "Arabic": b"r",
        "Devanagari": b"d",
        "Thai": b"t",
        "kana": b"k",
        "common Han": b"C",
        "other Han": b"Z",
        "common Hangul": b"H",
        "other Hangul": b"G",
        "scripts of two bytes": b"j",
        "scripts of three bytes": b"i",
        "foreign punctuation": b"s",
        "box drawing": b"x",
        "symbols": b"S",
        "beyond the basic plane": b"?",
    },
}


def sample(text: str) -> str:
    """A text of a few KiB as it is, a longer one as slices spread evenly over it."""
    if len(text) <= SAMPLE:
        return text
    size = SAMPLE // SLICES
    step = (len(text) - size) / (SLICES - 1)
    starts = (int(at * step) for at in range(SLICES))
    return "".join([text[start : start + size] for start in starts])


def shape(piece: str) -> bytes:
    """A class for each character; what lies beyond the basic plane is a `?`."""
    return piece.translate(CLASSES).encode("ascii", "replace")


def words(shaped: bytes) -> bytes:
    """Letters alone, `camelCase` taken apart; `A` where capitals stand for themselves."""
    letters = (b" " + shaped.translate(LETTERS)).replace(b"aA", b"a A").replace(b"AAa", b"A Aa")
    return letters.replace(b"Aa", b"aa")


def runs(shaped: bytes) -> bytes:
    """Letters, digits and punctuation, with rulers such as `--------` shortened."""
    for ruler, short in RULERS:
        shaped = shaped.replace(ruler, short)
    return b"|" + shaped.translate(RUNS)


def views(shaped: bytes) -> dict[str, bytes]:
    """The shape, reduced to what each group of patterns is about."""
    return {
        "words": words(shaped),
        "runs": runs(shaped),
        "blanks": b"x" + shaped.translate(BLANKS),
        "consonants": shaped.translate(CONSONANTS),
        "shape": shaped,
        "foreign": shaped.translate(None, ASCII),
    }


def counts(shaped: bytes) -> dict[str, int]:
    """How often each thing that is charged occurs."""
    seen = views(shaped)
    found = {
        name: seen[view].count(pattern)
        for view, patterns in PATTERNS.items()
        for name, pattern in patterns.items()
    }
    # Where every fifth word has an accent the language is not English: its words cost more.
    accented = 5 * (found["accents"] + found["Vietnamese"])
    found["foreign words"] = min(found["words"], accented)
    found["foreign runs"] = len(shaped.translate(SCRIPTS).split()) if seen["foreign"] else 0
    return found


def cost(shaped: bytes) -> float:
    """The tokens that a shape costs."""
    return sum(COSTS[name] * number for name, number in counts(shaped).items())


def estimate(text: str) -> int:
    """The tokens a text is likely to cost: 0 if it is empty, otherwise at least 1.

    A text of up to `SAMPLE` characters is read whole; of a longer one never more than `SAMPLE`
    characters are, in `SLICES` slices, so that a huge text costs no more time than a small one.
    The same text always gives the same number, never above `DEAREST` for each character.

    Of a text read whole, a further line never lowers the number. Nothing else about growth is
    promised: a further letter can join two runs into a cheaper one, and a longer text is sampled
    at other places. So whoever cuts a text to an allowance estimates the very piece that is to
    be delivered, and shortens it until it fits.
    """
    if not text:
        return 0
    read = sample(text)
    likely = ceil(cost(shape(read)) * len(text) / len(read))
    return min(max(1, likely), DEAREST * len(text))
