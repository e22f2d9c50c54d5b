"""Fits the estimator to Claude's tokenizer: `python -m tests.benchmarks.fit_estimator`.

It chooses the known words, finds classes for the pairs of characters, and fits the cost of pairs by
bounded least squares on the relative error, over the training side of the corpora alone; every kind
of text weighs the same. Texts made to be miscounted count only where the estimate is low. Rewrites
`words.txt` and `weights.py` in `efrit_budget/budget/`.
"""

from __future__ import annotations

import random
import zlib
from base64 import b85encode
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import reload
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from efrit_budget.budget import estimate as estimator
from efrit_budget.budget import weights
from efrit_budget.budget.shapes import PATTERNS, Pairs, count_patterns, ones
from efrit_budget.budget.words import CONTINUING, divided, known_words
from tests.benchmarks import fit_classes
from tests.benchmarks.corpora import Chunk, build
from tests.benchmarks.corpora_languages import language_texts
from tests.benchmarks.fit_classes import CYRILLIC, Classes, Group
from tests.benchmarks.tokenizers_real import claude, claude_words, count
from tests.budget.made_texts import made

Numbers = NDArray[np.float64]
FOLDER = Path(estimator.__file__).parent
WEIGHTS, WORDS = FOLDER / "weights.py", FOLDER / "words.txt"
KNOWN_WORDS = 8_000
MADE, MADE_BASE = 2_400, 0
PLANES = 0x20000
LOWEST_CLASS = 0x80
MOST_EXTRA = 8
SAMPLED_PER_KIND = 12
STARTS = (0, 4_000), (4_000, 9_000)
ROUNDS, PASSES = 250, 6
TOO_LOW = -0.1
LANGUAGE_WEIGHT, MADE_WEIGHT = 0.13, 0.05
RIDGE = 2e-6
LEAST_SHARE = {"JOINTS": 0.35, "BORDERS": 0.7, "UNKNOWN": 0.2, "CYRILLIC": 0.0}
"""The share of what was counted that a pair costs at the least, whatever the texts make of it."""
RARELY = 0.03
LINEAR = (*PATTERNS, "pieces")
MOST_LINEAR = 2.0


@dataclass(frozen=True)
class Sample:
    """A text to fit to."""

    group: str
    kind: str
    text: str
    real: int


def listed_words(chunks: Sequence[Chunk], real: Sequence[int]) -> list[str]:
    """Return the most frequent words that are one token, each kind of text weighing the same."""
    use: dict[str, float] = defaultdict(float)
    for chunk, tokens in zip(chunks, real, strict=True):
        bones = chunk.text.encode("utf-8", "surrogatepass").translate(None, CONTINUING)
        for word, times in Counter(divided(bones).all.decode("ascii").split()).items():
            use[word] += times / tokens
    whole = claude_words()
    known = [word for word in sorted(use, key=lambda word: -use[word]) if word in whole]
    return sorted(known[:KNOWN_WORDS])


def samples(chunks: Sequence[Chunk], real: Sequence[int]) -> list[Sample]:
    """Return all texts to fit to."""
    found = [
        Sample("corpora", chunk.kind, chunk.text, tokens)
        for chunk, tokens in zip(chunks, real, strict=True)
    ]
    pieces = [
        (text.kind, text.body[start:end])
        for text in language_texts(held_out=False)
        for start, end in STARTS
        if len(text.body) > start + 1_000
    ]
    hard = [made(MADE_BASE + seed) for seed in range(MADE)]
    for group, some in (("language", pieces), ("made", [(each.name, each.text) for each in hard])):
        numbers = count("claude", [text for _, text in some])
        found += [
            Sample(group, kind, text, tokens)
            for (kind, text), tokens in zip(some, numbers, strict=True)
            if tokens >= 300
        ]
    return found


def to_look_at(found: Sequence[Sample]) -> list[tuple[str, float]]:
    """Return the texts whose pairs are counted, cut, with their weights."""
    rng, by_kind = random.Random(5), defaultdict(list)
    for one in found:
        by_kind[one.group, one.kind].append(one.text)
    looked = []
    for (group, _), texts in by_kind.items():
        weight = {"corpora": 1.0, "language": 0.6, "made": 0.35}[group]
        if group != "made" or rng.random() < 0.5:
            some = rng.sample(texts, min(SAMPLED_PER_KIND, len(texts)))
            looked += [(text[: fit_classes.LONGEST], weight) for text in some]
    return looked


def all_classes(found: Sequence[Sample]) -> dict[str, Classes]:
    """Return the classes of every table."""
    table, cyrillic = fit_classes.joints(to_look_at(found))
    unknown: dict[str, Counter[bytes]] = defaultdict(Counter)
    for one in found:
        kind = one.kind if one.group != "made" else f"made {len(one.kind) % 40}"
        unknown[kind].update(fit_classes.words_in(one.text))
    return {
        "JOINTS": fit_classes.of_ascii(table),
        "BORDERS": fit_classes.of_borders(table),
        "UNKNOWN": fit_classes.of_letters(fit_classes.unknown_words(unknown)),
        "CYRILLIC": fit_classes.of_cyrillic(cyrillic),
    }


def half_bytes(groups: Sequence[Group], shift: int) -> bytearray:
    """Return a table that maps each byte to its class."""
    table = bytearray(256)
    for number, group in enumerate(groups):
        for code in group:
            if code < len(table):
                table[code] = number << shift
    return table


@dataclass(frozen=True)
class Characters:
    """The classes of characters beyond ASCII, and what belongs to each."""

    table: str
    extra: bytes
    firsts: bytes
    seconds: bytes
    others: bytes


def characters(cyrillic: Classes) -> Characters:
    """Give each character a class, by its role among Cyrillic letters and its own tokens."""
    first = {code: at for at, group in enumerate(cyrillic.firsts) for code in group}
    second = {code: at for at, group in enumerate(cyrillic.seconds) for code in group}
    real = [code for code in range(PLANES) if not 0xD800 <= code < 0xE000]
    own = dict(zip(real, claude()([chr(code) for code in real]), strict=True))
    last = fit_classes.NIBBLE - 1
    classes: dict[tuple[int, int, int] | int, int] = {}
    table = []
    for code in range(PLANES):
        extra = min(MOST_EXTRA, own.get(code, 3) - 1)
        at = code - CYRILLIC[0]
        is_letter = code in CYRILLIC and at in first and at in second
        key = (
            (first[at], second[at], extra)
            if is_letter
            else (last, last, 0)
            if code == 32
            else extra
        )
        table.append(chr(classes.setdefault(key, LOWEST_CLASS + len(classes))))
    tables = [bytearray(256) for _ in range(3)]
    for key, code in classes.items():
        extra = key if isinstance(key, int) else key[2]
        tables[0][code] = (1 << extra) - 1
        if not isinstance(key, int):
            tables[1][code], tables[2][code] = key[0] << 4, key[1]
    tables[0][ord("?")] = 0b111
    letters = {code for key, code in classes.items() if not isinstance(key, int)}
    others = bytes(code for code in range(256) if code not in letters)
    extra_bits, firsts, seconds = map(bytes, tables)
    return Characters("".join(table), extra_bits, firsts, seconds, others)


def with_costs(first: bytes, second: bytes, costs: Sequence[float]) -> Pairs:
    """Return the tables of pairs with these costs."""
    units = [min(72, max(0, round(cost * 64))) for cost in costs]
    eighths = [min(8, unit // 8) for unit in units]
    bits = bytes((1 << number) - 1 for number in eighths)
    rest = bytes((1 << (unit - 8 * whole)) - 1 for unit, whole in zip(units, eighths, strict=True))
    return Pairs(first, second, bits, rest)


def literal(table: bytes) -> str:
    """Return a table as Python text."""
    return '"' + b85encode(zlib.compress(table, 9)).decode() + '"'


def write(found: dict[str, Classes], costs: dict[str, Numbers], linear: dict[str, float]) -> None:
    """Write the module of weights, and load it."""
    letters = characters(found["CYRILLIC"])
    lines = [HEAD, "COSTS = {"]
    lines += [f'    "{name}": {round(cost, 3)},' for name, cost in linear.items()]
    lines.append("}")
    for name, classes in found.items():
        first, second = letters.firsts, letters.seconds
        if name != "CYRILLIC":
            first = bytes(half_bytes(classes.firsts, 4))
            second = bytes(half_bytes(classes.seconds, 0))
        pairs = with_costs(first, second, list(costs[name]))
        lines += [f"{name} = pairs(", *(f"    {literal(table)}," for table in pairs), ")"]
    lines += [
        "# The class of each character of the first two planes, and its tokens beyond one as bits.",
        f'CHARACTERS = table({literal(letters.table.encode("latin-1"))}).decode("latin-1")',
        f"EXTRA = table({literal(letters.extra)})",
        f"NOT_CYRILLIC = table({literal(letters.others)})",
    ]
    WEIGHTS.write_text("\n".join(lines) + "\n")
    reload(weights)


HEAD = '''"""The costs that the estimator adds up. Written by `tests.benchmarks.fit_estimator`."""

# ruff: noqa: E501
# fmt: off
from __future__ import annotations

from base64 import b85decode
from zlib import decompress

from efrit_budget.budget.shapes import Pairs


def table(packed: str) -> bytes:
    """Return the bytes of a packed table."""
    return decompress(b85decode(packed))


def pairs(*packed: str) -> Pairs:
    """Return the classes of bytes and the costs of their pairs from packed tables."""
    first, second, eighths, rest = map(table, packed)
    return Pairs(first, second, eighths, rest)

'''


def pair_counts(pairs: Pairs, coded: bytes) -> Numbers:
    """Count how often each pair of classes occurs."""
    first = np.frombuffer(coded[:-1].translate(pairs.first), np.uint8)
    second = np.frombuffer(coded[1:].translate(pairs.second), np.uint8)
    return np.bincount(first | second, minlength=256).astype(np.float64)


def features(text: str) -> tuple[Numbers, float]:
    """Return the estimator's counts for a text, in the unknowns' order, and its fixed cost."""
    text, raw = estimator.joined(text)
    bones = raw.translate(None, CONTINUING)
    unknown = divided(bones)
    borders = cyrillic = np.zeros(256)
    certain = 1.0 + estimator.UNBROKEN_COST * unknown.unbroken
    if len(bones) < len(raw):
        borders = pair_counts(weights.BORDERS, bones)
        classes = estimator.foreign_classes(raw)
        certain += ones(classes.translate(weights.EXTRA))
        certain += estimator.SENTENCE_MORE * text.count(estimator.SENTENCE)
        cyrillic = pair_counts(weights.CYRILLIC, classes.translate(None, weights.NOT_CYRILLIC))
    linear = [*count_patterns(bones), unknown.pieces]
    tables = [
        pair_counts(weights.JOINTS, bones),
        borders,
        pair_counts(weights.UNKNOWN, unknown.rest),
        cyrillic,
    ]
    return np.concatenate([*tables, np.array(linear, dtype=np.float64)]), certain


def bounds(found: dict[str, Classes]) -> tuple[Numbers, Numbers, Numbers]:
    """Return for each unknown its value without data, its minimum and its maximum."""
    prior, least = [], []
    for name, classes in found.items():
        whole = np.zeros((fit_classes.NIBBLE, fit_classes.NIBBLE))
        share = np.where(classes.shares < RARELY, 0, classes.shares)
        whole[: share.shape[0], : share.shape[1]] = share
        free = _free(name)
        prior.append((whole * free).ravel())
        least.append((whole * free * LEAST_SHARE[name]).ravel())
    most = [np.where(each > 0, 1.0, 0.0) for each in prior]
    none = np.zeros(len(LINEAR))
    return (
        np.concatenate([*prior, none]),
        np.concatenate([*least, none]),
        np.concatenate([*most, none + MOST_LINEAR]),
    )


def _free(name: str) -> Numbers:
    """Return a matrix with 1 for each pair that a table charges, else 0."""
    free = np.ones((fit_classes.NIBBLE, fit_classes.NIBBLE))
    last = fit_classes.NIBBLE - 1
    if name == "JOINTS":  # pairs of letters are charged as words, the others as borders
        free[last - 3 : last - 1, last - 3 : last - 1] = 0
        free[last], free[:, last] = 0, 0
    elif name == "BORDERS":
        free[-6:, -6:] = 0
    elif name == "CYRILLIC":
        free[last], free[:, last] = 0, 0
    return free


def solved(rows: Numbers, wanted: Numbers, limits: tuple[Numbers, Numbers, Numbers]) -> Numbers:
    """Solve bounded least squares by coordinate descent, drawn towards the values without data."""
    prior, least, most = limits
    gram, target = rows.T @ rows, rows.T @ wanted
    scale = np.diag(gram) + RIDGE
    gram, target = gram + RIDGE * np.eye(len(gram)), target + RIDGE * prior
    found: Numbers = np.clip(prior, least, most)
    reached = gram @ found
    for _ in range(ROUNDS):
        farthest = 0.0
        for at in range(len(found)):
            step = (target[at] - reached[at]) / scale[at]
            moved = min(max(found[at] + step, least[at]), most[at])
            if moved != found[at]:
                reached += gram[:, at] * (moved - found[at])
                farthest = max(farthest, abs(moved - found[at]))
                found[at] = moved
        if farthest < 1e-4:
            break
    return found


def importance(found: Sequence[Sample]) -> Numbers:
    """Return the initial weight of each text; 0 for thin ones, which are charged in another way."""
    sizes = Counter(one.kind for one in found)
    thin = [
        one.group == "made" and estimator.cost(one.text) > estimator.measure(one.text)
        for one in found
    ]
    base = {"language": LANGUAGE_WEIGHT, "made": MADE_WEIGHT}
    weight = [base.get(one.group, sizes[one.kind] ** -0.5) for one in found]
    return np.where(thin, 0, weight)


def emphasized(found: Sequence[Sample], emphasis: Numbers, misses: Numbers) -> Numbers:
    """Return the emphasis on texts for another pass: more on those whose estimate is far off.

    Of generated texts only those estimated too low gain emphasis.
    """
    made = np.array([one.group == "made" for one in found])
    natural = np.array([one.group == "language" for one in found])
    times = np.where(made, np.select([misses < TOO_LOW, misses < -0.05], [1.6, 1.0], 0.8), 1)
    times = np.where(natural & (abs(misses) > 0.12), 1.15, times)
    changed: Numbers = np.clip(emphasis * times, 0.2, 40)
    return changed


def fitted(found: Sequence[Sample], limits: tuple[Numbers, Numbers, Numbers]) -> Numbers:
    """Fit the cost of everything that is counted."""
    counted = [features(one.text) for one in found]
    rows, certain = np.array([row for row, _ in counted]), np.array([sure for _, sure in counted])
    real = np.array([one.real for one in found], dtype=np.float64)
    costs, emphasis, weights = limits[0], np.ones(len(found)), importance(found)
    for _ in range(PASSES):
        weight = weights * emphasis
        costs = solved(rows * (weight / real)[:, None], (real - certain) / real * weight, limits)
        emphasis = emphasized(found, emphasis, (rows @ costs + certain) / real - 1)
    return costs


def main() -> None:
    """Fit the estimator and rewrite the words and the weights."""
    chunks = build().train
    real = count("claude", [chunk.text for chunk in chunks])
    WORDS.write_text("\n".join(listed_words(chunks, real)) + "\n", encoding="ascii")
    known_words.cache_clear()
    found = samples(chunks, real)
    classes = all_classes(found)
    limits = bounds(classes)
    spans = {name: limits[0][256 * at : 256 * (at + 1)] for at, name in enumerate(classes)}
    write(classes, spans, dict.fromkeys(LINEAR, 0.0))
    costs = fitted(found, limits)
    spans = {name: costs[256 * at : 256 * (at + 1)] for at, name in enumerate(classes)}
    linear = {name: float(cost) for name, cost in zip(LINEAR, costs[1024:], strict=True)}
    write(classes, spans, linear)
    print(f"fitted {np.count_nonzero(costs)} costs to {len(found)} texts")


if __name__ == "__main__":
    main()
