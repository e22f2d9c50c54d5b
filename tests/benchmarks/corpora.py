"""Texts of every kind a session meets, split into train and held-out by their origin.

A text's origin is the package, manual, language or template it belongs to. An origin's hash says on
which side all of its texts fall, so nothing held out has a sibling in the fit.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import cycle, islice

from tests.benchmarks.corpora_files import file_texts
from tests.benchmarks.corpora_made import made_texts
from tests.benchmarks.corpora_texts import Text, is_held_out

SMALLEST, LARGEST = 400, 24_000
CHUNKS_PER_KIND = 80
CHUNKS_PER_TEXT = 3
FEWEST_CHUNKS = 10


@dataclass(frozen=True)
class Chunk:
    """A piece of one text: what the estimator is fitted to or measured on."""

    kind: str
    group: str
    origin: str
    text: str


@dataclass(frozen=True)
class Corpora:
    """The two sides, and the kinds this machine has too little of to measure."""

    train: list[Chunk]
    held_out: list[Chunk]
    too_small: list[str]


def cut(text: Text, rng: random.Random) -> Iterator[Chunk]:
    """Yield a few pieces of a text, their sizes spread evenly on a logarithmic scale."""
    for _ in range(CHUNKS_PER_TEXT):
        size = int(SMALLEST * (LARGEST / SMALLEST) ** rng.random())
        start = rng.randrange(max(1, len(text.body) - size + 1))
        piece = text.body[start : start + size]
        if len(piece) >= SMALLEST:
            yield Chunk(text.kind, text.group, text.origin, piece)


def interleaved(by_origin: dict[str, list[Chunk]]) -> Iterator[Chunk]:
    """Yield one chunk of each origin in turn, so that no large package drowns the rest."""
    waiting = {origin: iter(chunks) for origin, chunks in by_origin.items()}
    for origin in cycle(sorted(waiting)):
        if not waiting:
            return
        chunk = next(waiting[origin], None) if origin in waiting else None
        if chunk is None:
            waiting.pop(origin, None)
        else:
            yield chunk


def side(texts: Iterable[Text], *, held_out: bool) -> dict[str, list[Chunk]]:
    """Return the chunks of one side, by kind."""
    found: dict[str, dict[str, list[Chunk]]] = defaultdict(lambda: defaultdict(list))
    for text in texts:
        if is_held_out(text.origin) == held_out:
            rng = random.Random(f"{text.kind}:{text.origin}:{len(text.body)}")
            found[text.kind][text.origin].extend(cut(text, rng))
    return {
        kind: list(islice(interleaved(origins), CHUNKS_PER_KIND)) for kind, origins in found.items()
    }


def build() -> Corpora:
    """Return all kinds of text that this machine can offer, on both sides."""
    texts = [*file_texts(), *made_texts()]
    train = side(texts, held_out=False)
    held_out = side(texts, held_out=True)
    kinds = sorted(train.keys() | held_out.keys())
    enough = [
        kind
        for kind in kinds
        if min(len(train.get(kind, [])), len(held_out.get(kind, []))) >= FEWEST_CHUNKS
    ]
    return Corpora(
        train=[chunk for kind in enough for chunk in train[kind]],
        held_out=[chunk for kind in enough for chunk in held_out[kind]],
        too_small=[kind for kind in kinds if kind not in enough],
    )
