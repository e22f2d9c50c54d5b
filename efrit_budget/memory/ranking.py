"""In which order what was found is given: relevance, blended with three other parts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heappush, heapreplace
from typing import NamedTuple

DAY = 86_400.0
HALF_LIFE_DAYS = 30.0
RECENCY, IMPORTANCE, ACCESS = 0.25, 0.25, 0.1
"""What each part adds at most, as a share of the relevance."""
HALF_ACCESSES = 5
"""The number of readings at which the part for them is half of its most."""
MOST_HALVINGS = 60
MOST_BLEND = 1 + RECENCY + IMPORTANCE + ACCESS


class Parts(NamedTuple):
    """What a rank is made of."""

    score: float
    relevance: float
    """BM25, the larger the better; 1 where no words were asked for."""
    recency: float
    """1 for what was saved just now, 0.5 after one half-life, 0.25 after two."""
    importance: float
    access: float
    """0 for what was never read, towards 1 for what was read often."""


@dataclass(frozen=True)
class Clock:
    """The moment at which ages are measured, and the age at which half of the recency is gone."""

    now: float
    half_life_days: float = HALF_LIFE_DAYS


Match = tuple[int, float, float, float, int]
"""An id, its relevance, the time of its last change, its importance, and how often it was read."""


def parts_of(match: Match, clock: Clock) -> Parts:
    """The parts of a rank and the score they make."""
    _, relevance, updated, importance, accesses = match
    half_life = clock.half_life_days * DAY
    recency = _recency(updated, clock.now, half_life)
    return Parts(
        score=_score(match, clock.now, half_life),
        relevance=relevance,
        recency=recency,
        importance=importance,
        access=accesses / (accesses + HALF_ACCESSES),
    )


def best(matches: Iterable[Match], limit: int, clock: Clock) -> list[tuple[int, Parts]]:
    """The best of matches that come the most relevant first; of equals, the one saved last.

    No more of them are looked at than can be among the best, however the other parts are.
    """
    now, half_life = clock.now, clock.half_life_days * DAY
    kept: list[tuple[float, Match]] = []
    worst = 0.0
    for match in matches:
        if match[1] * MOST_BLEND < worst:
            break
        entry = (_score(match, now, half_life), match)
        if len(kept) < limit:
            heappush(kept, entry)
        elif entry > kept[0]:
            heapreplace(kept, entry)
        worst = kept[0][0] if len(kept) == limit else 0.0
    return [(match[0], parts_of(match, clock)) for _, match in sorted(kept, reverse=True)]


def _score(match: Match, now: float, half_life: float) -> float:
    _, relevance, updated, importance, accesses = match
    recency = _recency(updated, now, half_life)
    access = ACCESS * accesses / (accesses + HALF_ACCESSES) if accesses else 0.0
    return relevance * (1 + RECENCY * recency + IMPORTANCE * importance + access)


def _recency(updated: float, now: float, half_life: float) -> float:
    """What is left of it: halved with each half-life, and falling evenly in between."""
    age = (now - updated) / half_life
    if age <= 1:
        return 1 - age / 2 if age > 0 else 1.0
    halvings = min(int(age), MOST_HALVINGS)
    return (1 - min(age - halvings, 1.0) / 2) / (1 << halvings)
