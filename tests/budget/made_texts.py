"""Generated texts that are hard to count: random shapes, scripts and lengths, from a seed.

`made(seed)` is the same text on every machine. Among the shapes are texts that are blank where a
sample at fixed places would look and dense elsewhere, unbroken runs, a few characters over and
over, marks on letters, and two scripts that take turns.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from unicodedata import ucd_3_2_0 as unicode

from tests.budget.measured import MEASURED

SHORTEST, LONGEST = 600, 24_000
STEERING_LONGEST = 60_000
BLOCK = 128
WANTED = {"L", "M", "N", "P", "S"}
MARKS = "".join(chr(code) for code in range(0x300, 0x370))
ASCII = {
    "small letters": "abcdefghijklmnopqrstuvwxyz",
    "rare letters": "jkqvwxyz",
    "vowels": "aeiouy",
    "capitals": "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "letters": "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "hex": "0123456789abcdef",
    "base64": "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
    "digits": "0123456789",
    "marks": "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~",
    "brackets": "()[]{}<>",
    "printable": "".join(map(chr, range(33, 127))),
    "controls": "".join(map(chr, [*range(1, 9), *range(14, 32), 127])),
}
NAMED = {
    "Cyrillic": "абвгдежзийклмнопрстуфхцчшщъыьэюя",
    "Cyrillic capitals": "АБВГДЕЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯ",
    "Greek": "αβγδεζηθικλμνξοπρστυφχψω",
    "Hebrew with vowels": "אבגדהוזחטיכלמנסעפצקרשתְֱֲֳִֵֶַָֹּׁ",
    "box drawing": "".join(map(chr, range(0x2500, 0x2580))),
    "ligatures": "\ufdfa\ufdfb\ufdf2\ufb03\u3300\u3316\u33ff\u337f",
    "blanks": "\u00a0\u2000\u2003\u2009\u200b\u200d\u2028\u2060\u3000\ufeff",
    "pictures": "".join(map(chr, range(0x1F300, 0x1F650))),
    "private": "\ue000\ue123\uf8ff\U000f0001\U0010fffd",
}
SYLLABLES = (
    *("ba", "ke", "li", "mo", "nu", "ra", "te", "si", "do", "fa", "the", "ing", "ion", "er", "an"),
    *("st", "re", "on", "at", "en", "tz", "kw", "ngu", "aa", "uu", "chi"),
)
FILLERS = ("\n", " ", "the ", "-", "a\n", "\t")


@dataclass(frozen=True)
class Made:
    """A text, and the parameters it is made from."""

    name: str
    text: str


@cache
def blocks() -> dict[str, str]:
    """Return the printable characters of each stretch of Unicode, by its first code point.

    They are those of an old version of Unicode, which is the same in every Python.
    """
    found: dict[str, str] = {}
    for start in (*range(0x80, 0x10000, BLOCK), *range(0x10000, 0x1FC00, BLOCK)):
        some = [chr(code) for code in range(start, start + BLOCK)]
        kept = "".join(each for each in some if unicode.category(each)[0] in WANTED)
        if len(kept) > BLOCK // 8:
            found[f"U+{start:04X}"] = kept
    return found


def alphabet(rng: random.Random) -> tuple[str, str]:
    """Return an alphabet and its name: all characters of a stretch, or a few of them."""
    source: dict[str, str] = rng.choice([ASCII, ASCII, NAMED, blocks(), blocks()])
    name = rng.choice(sorted(source))
    letters = source[name]
    if rng.random() < 0.3:
        size = rng.randint(1, 6)
        return f"{size} of {name}", "".join(rng.choices(letters, k=size))
    return name, letters


def word(rng: random.Random, letters: Sequence[str]) -> str:
    """Return a word of random letters."""
    return "".join(rng.choices(letters, k=rng.randint(1, 12)))


def words(rng: random.Random, letters: str, size: int, between: str = " ") -> str:
    """Return words of random letters with the separator between them."""
    parts = []
    while size > 0:
        parts.append(word(rng, letters))
        size -= len(parts[-1]) + len(between)
    return between.join(parts)


def run(rng: random.Random, letters: str, size: int) -> str:
    """Return random letters without a break."""
    return "".join(rng.choices(letters, k=size))


def wrapped(rng: random.Random, letters: str, size: int) -> str:
    """Return random letters on lines of one width."""
    text, width = run(rng, letters, size), rng.randint(10, 120)
    return "\n".join(text[at : at + width] for at in range(0, size, width))


def punctuated(rng: random.Random, letters: str, size: int) -> str:
    """Return words with marks and digits between them."""
    parts = []
    while size > 0:
        end = rng.choice([" ", "\n", ", ", ".", "=", "(", "); ", '": "', "/", "-", "_", "7", "42"])
        parts.append(word(rng, letters) + end)
        size -= len(parts[-1])
    return "".join(parts)


def cased(rng: random.Random, letters: str, size: int) -> str:
    """Return words in capitals, with a capital first, or in camel case."""
    text = words(rng, letters, size)
    return rng.choice([text.upper(), text.title(), text.title().replace(" ", "")])


def marked(rng: random.Random, letters: str, size: int) -> str:
    """Return letters with one mark or a few marks on each."""
    most = rng.randint(1, 4)
    parts = (rng.choice(letters) + run(rng, MARKS, rng.randint(1, most)) for _ in range(size // 3))
    return "".join(parts)


def by_turns(rng: random.Random, letters: str, size: int) -> str:
    """Return characters of two alphabets, by turns."""
    _, others = alphabet(rng)
    return "".join(rng.choice(letters) + rng.choice(others) for _ in range(size // 2))


def repeated(rng: random.Random, letters: str, size: int) -> str:
    """Return a few characters repeated over and over."""
    unit = run(rng, letters, rng.randint(1, 20)) + rng.choice(["", " ", "\n"])
    return unit * (size // len(unit))


def syllables(rng: random.Random, _letters: str, size: int) -> str:
    """Return pronounceable words of no language."""
    some = rng.sample(SYLLABLES, rng.randint(4, len(SYLLABLES)))
    parts = ["".join(rng.choices(some, k=rng.randint(1, 4))) for _ in range(size // 6)]
    return " ".join(parts)


def shuffled(rng: random.Random, _letters: str, size: int) -> str:
    """Return the words of a text of some kind in another order, unchanged or changed."""
    kind = rng.choice(sorted(MEASURED))
    parts = rng.choices(MEASURED[kind][1].split(), k=size // 6)
    changes: list[Callable[[str], str]] = [
        str.strip,
        str.upper,
        str.swapcase,
        lambda word: word[::-1],
    ]
    change = rng.choice(changes)
    return rng.choice([" ", "\n", "-"]).join(map(change, parts))


def islands(rng: random.Random, letters: str, size: int) -> str:
    """Return blanks with dense stretches at regular places."""
    filler, period = rng.choice(FILLERS), rng.randint(100, 3000)
    dense = run(rng, letters, size)
    share = int(period * rng.uniform(0.3, 0.95))
    parts = [
        filler * ((period - share) // len(filler)) + dense[at : at + share]
        for at in range(0, size, period)
    ]
    return "".join(parts)


def steering(rng: random.Random, letters: str, _size: int) -> str:
    """Return a dense text that is blank where a sample of evenly spread slices would read."""
    size = rng.randint(SHORTEST * 5, STEERING_LONGEST)
    slices, width = rng.choice([(16, 128), (16, 128), (8, 256), (32, 64)])
    if size <= slices * width:
        size = slices * width * 3
    dense, filler = list(run(rng, letters, size)), rng.choice(FILLERS)
    step = (size - width) / (slices - 1)
    for at in range(slices):
        start = int(at * step)
        dense[start : start + width] = (filler * width)[:width]
    return "".join(dense)


SHAPES: tuple[Callable[[random.Random, str, int], str], ...] = (
    words,
    run,
    wrapped,
    punctuated,
    cased,
    marked,
    by_turns,
    repeated,
    syllables,
    shuffled,
    islands,
    steering,
)


def made(seed: int) -> Made:
    """Return the generated text of a seed."""
    rng = random.Random(f"made {seed}")
    name, letters = alphabet(rng)
    shape = SHAPES[seed % len(SHAPES)]
    size = int(SHORTEST * (LONGEST / SHORTEST) ** rng.random())
    return Made(f"{seed}: {shape.__name__}, {name}", shape(rng, letters, size))


if __name__ == "__main__":
    print(made(int(sys.argv[1])).text)
