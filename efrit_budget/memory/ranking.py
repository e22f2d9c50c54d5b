"""In which order what was found is given: relevance, blended with three other parts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heappush, heappushpop

DAY = 86_400.0
HALF_LIFE_DAYS = 30.0
RECENCY, IMPORTANCE, ACCESS = 0.5, 0.5, 0.2
"""What each part adds at most, as a share of the relevance."""
HALF_ACCESSES = 5
"""The number of readings at which the part for them is half of its most."""
MOST_HALVINGS = 60
MOST_BLEND = 1 + RECENCY + IMPORTANCE + ACCESS


@dataclass(frozen=True)
class Parts:
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

    def recency(self, updated: float) -> float:
        """What is left of it: halved with each half-life, and falling evenly in between."""
        age = max(0.0, self.now - updated) / (self.half_life_days * DAY)
        halvings = min(int(age), MOST_HALVINGS)
        return (1 - min(age - halvings, 1.0) / 2) / (1 << halvings)


@dataclass(frozen=True)
class Match:
    """What of an observation ranks it."""

    id: int
    relevance: float
    updated: float
    importance: float
    accesses: int

    def parts(self, clock: Clock) -> Parts:
        """The parts of the rank and the score they make."""
        recency = clock.recency(self.updated)
        access = self.accesses / (self.accesses + HALF_ACCESSES)
        blend = 1 + RECENCY * recency + IMPORTANCE * self.importance + ACCESS * access
        return Parts(self.relevance * blend, self.relevance, recency, self.importance, access)


def best(matches: Iterable[Match], limit: int, clock: Clock) -> list[tuple[int, Parts]]:
    """The best of matches that come the most relevant first; of equals, the one saved last.

    No more of them are looked at than can be among the best, however the other parts are.
    """
    kept: list[tuple[float, int, Parts]] = []
    for match in matches:
        if len(kept) == limit and match.relevance * MOST_BLEND < kept[0][0]:
            break
        parts = match.parts(clock)
        entry = (parts.score, match.id, parts)
        if len(kept) < limit:
            heappush(kept, entry)
        else:
            heappushpop(kept, entry)
    return [(number, parts) for _, number, parts in sorted(kept, reverse=True)]
