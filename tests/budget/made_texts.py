"""Generated texts that are hard to count: random shapes, scripts and lengths, from a seed.

`made(seed)` is the same text on every machine. Among the shapes are texts that are blank where a
sample at fixed places would look and dense elsewhere, unbroken runs, a few characters over and
over, marks on letters, scripts that take turns, bytes written out in characters, numbers, words
spelled out, disguised or respelled, and markup around random names.
"""

from __future__ import annotations

import base64
import random
import re
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


def a_text(rng: random.Random) -> str:
    """Return a text of some kind that was counted."""
    return MEASURED[rng.choice(sorted(MEASURED))][1]


def escaped(rng: random.Random, letters: str, size: int) -> str:
    """Return bytes written out in one of the usual ways."""
    raw = rng.randbytes(size // 3) if rng.random() < 0.5 else run(rng, letters, size // 4).encode()
    between = rng.choice(["", " ", ", ", ",", ":", "\n", "-", "\\"])
    forms = ("\\x%02x", "%%%02X", "&#%d;", "%02x", "%d", "%03o", "\\u00%02x", "=%02X")
    if rng.random() < 0.6:
        form = rng.choice(forms)
        return between.join(form % byte for byte in raw)
    ways: list[Callable[[bytes], bytes]] = [base64.b32encode, base64.b85encode, base64.b64encode]
    return rng.choice(ways)(raw).decode()


def spelled(rng: random.Random, letters: str, size: int) -> str:
    """Return the letters of words with a separator between them."""
    text = a_text(rng) if rng.random() < 0.5 else words(rng, letters, size)
    between = rng.choice([*" .-\n/_\\", "\u200b", "\u00a0", "\u00ad", "\u0301", letters[0]])
    width = rng.choice([1, 1, 2, 3])
    parts = (text[at : at + width] for at in range(0, len(text), width))
    return over_and_over(between.join(parts), size)


def over_and_over(text: str, size: int) -> str:
    """Return a text repeated until it has a size."""
    return (text * (size // len(text) + 1))[:size]


def disguised(rng: random.Random, letters: str, size: int) -> str:
    """Return a text with some of its characters replaced by others that look alike."""
    alike = str.maketrans("aeopcxyiABEKMHOPCTX", "аеорсхуіАВЕКМНОРСТХ")  # noqa: RUF001
    changes: list[Callable[[str], str]] = [
        lambda each: each.translate(alike),
        lambda each: each.translate(str.maketrans("aeiostlbg", "431057186")),
        lambda each: chr(ord(each) + 0xFEE0) if "!" <= each <= "~" else each,
        lambda each: chr(ord(each) + 0x2469) if "a" <= each <= "z" else each,
        lambda each: each + rng.choice(MARKS) if each.isalpha() else each,
        lambda each: each + rng.choice(letters),
        str.swapcase,
    ]
    change, share = rng.choice(changes), rng.choice([0.1, 0.3, 0.6, 1])
    text = over_and_over(a_text(rng), size)
    return "".join(change(each) if rng.random() < share else each for each in text)


def numbered(rng: random.Random, letters: str, size: int) -> str:
    """Return numbers, dates, addresses and identifiers."""
    forms: list[Callable[[], str]] = [
        lambda: str(rng.randint(0, 10 ** rng.randint(1, 12))),
        lambda: f"{rng.uniform(-1000, 1000):.{rng.randint(0, 9)}f}",
        lambda: ".".join(str(rng.randint(0, 255)) for _ in range(4)),
        lambda: f"20{rng.randint(10, 30)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}",
        lambda: f"{rng.getrandbits(32):08x}-{rng.getrandbits(16):04x}-{rng.getrandbits(48):012x}",
        lambda: f"{rng.random() * 10 ** rng.randint(-9, 9):e}",
        lambda: str(rng.randint(0, 9)),
        lambda: f"{rng.getrandbits(40):X}",
    ]
    some: list[Callable[[], str]] = rng.sample(forms, rng.randint(1, 3))
    between = rng.choice([*" ,\n\t;|", ", ", " - ", letters[0]])
    numbers = [rng.choice(some)() for _ in range(size // 10)]
    return str(between.join(numbers))


def few_words(rng: random.Random, letters: str, size: int) -> str:
    """Return a few random words in random order."""
    some = [word(rng, letters) for _ in range(rng.randint(2, 60))]
    ends = rng.sample(["", " ", "\n", ", ", ".", "_", "-", "(", "/"], rng.randint(1, 3))
    return "".join(rng.choice(some) + rng.choice(ends) for _ in range(size // 5))


def slowly_repeated(rng: random.Random, letters: str, size: int) -> str:
    """Return a line of random words over and over."""
    line = words(rng, letters, rng.randint(20, 400), rng.choice(["", " ", "_", "\n"]))
    return over_and_over(line, size)


def respelled(rng: random.Random, _letters: str, size: int) -> str:
    """Return the words of a text of some kind, each spelled in another way."""
    changes: list[Callable[[str], str]] = [
        lambda word: "".join(map(str.upper, word[::2])) + word[1::2],
        lambda word: "".join(each.upper() if at % 2 else each for at, each in enumerate(word)),
        lambda word: re.sub("[aeiou]", "", word),
        lambda word: word[1:] + word[:1] + "ay",
        lambda word: word + word[::-1],
        lambda word: word * 2,
        lambda word: word[-3:],
        lambda word: word[:2],
    ]
    change = rng.choice(changes)
    parts = rng.choices(a_text(rng).split(), k=size // 6)
    return rng.choice(["", " ", "\n", "-", "_", "."]).join(map(change, parts))


def nested(rng: random.Random, letters: str, size: int) -> str:
    """Return markup or code around random names."""
    names = [word(rng, letters) for _ in range(rng.randint(3, 200))]
    forms = (
        *("<{0}>{1}</{0}>", '{{"{0}":"{1}"}},', "\\{0}{{{1}}}", "({0} '{1})", "[{0}][{1}]"),
        *("$({0}){{{1}}}", "{0}({1});\n", "@{0}:{1} ", "**{0}** `{1}`", '\\"{0}\\":\\"{1}\\"'),
        *("{0}::{1}->", "\x1b[31m{0}\x1b[0m {1}"),
    )
    form = rng.choice(forms)
    return "".join(form.format(*rng.choices(names, k=2)) for _ in range(size // 12))


def lengthened(rng: random.Random, letters: str, size: int) -> str:
    """Return random letters, each drawn out."""
    most = rng.choice([3, 10, 40, 200])
    return "".join(rng.choice(letters) * rng.randint(1, most) for _ in range(2 * size // most))


def in_pieces(rng: random.Random, letters: str, size: int) -> str:
    """Return pieces of random letters or words, each in one of a few alphabets."""
    some = [letters, *(alphabet(rng)[1] for _ in range(rng.randint(1, 3)))]
    least, most = rng.choice([(5, 30), (40, 600), (64, 64), (192, 192), (100, 300)])
    sizes = (rng.randint(least, most) for _ in range(2 * size // (least + most)))
    return "".join(rng.choice([run, words])(rng, rng.choice(some), width) for width in sizes)


def glued(rng: random.Random, _letters: str, size: int) -> str:
    """Return words of a text of some kind without a space between them."""
    some = re.findall("[A-Za-z]+", a_text(rng)) or ["word"]
    cases: list[Callable[[str], str]] = [str, str.title, str.upper]
    parts = (rng.choice(cases)(rng.choice(some)) for _ in range(size // 5))
    return rng.choice(["", "", "\n"]).join(parts)


def in_a_circle(rng: random.Random, letters: str, size: int) -> str:
    """Return characters of several alphabets, by turns."""
    some = [letters, *(alphabet(rng)[1] for _ in range(rng.randint(1, 4)))]
    return "".join(rng.choice(some[at % len(some)]) for at in range(size))


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
    escaped,
    spelled,
    disguised,
    numbered,
    few_words,
    slowly_repeated,
    respelled,
    nested,
    lengthened,
    in_pieces,
    glued,
    in_a_circle,
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
