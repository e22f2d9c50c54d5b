"""Rank search results by relevance, recency, importance and use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from efrit_budget.memory.observation import Observation

DAY = 86_400.0
HALF_LIFE_DAYS = 30.0
RECENCY, IMPORTANCE, ACCESS = 0.25, 0.25, 0.1
"""What each part adds at most, as a share of the relevance."""
HALF_ACCESSES = 5
"""The number of readings at which the part for them is half of its most."""
MOST_HALVINGS = 60


class Parts(NamedTuple):
    """The parts of a rank."""

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
    """The time for ages, and the half-life of recency."""

    now: float
    half_life_days: float = HALF_LIFE_DAYS


def parts_of(observation: Observation, relevance: float, clock: Clock) -> Parts:
    """Return the parts of a rank and the score."""
    importance = observation.importance
    recency = _recency(observation.updated, clock)
    access = observation.accesses / (observation.accesses + HALF_ACCESSES)
    score = relevance * (1 + RECENCY * recency + IMPORTANCE * importance + ACCESS * access)
    return Parts(score, relevance, recency, importance, access)


def _recency(updated: float, clock: Clock) -> float:
    """Return the recency, halved with each half-life."""
    age = max(0.0, (clock.now - updated) / (clock.half_life_days * DAY))
    halvings = min(int(age), MOST_HALVINGS)
    return (1 - min(age - halvings, 1.0) / 2) / (1 << halvings)
