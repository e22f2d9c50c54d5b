"""The bands of a budget, and the texts that tell the model about them."""

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from efrit_budget.budget.families import Family

WAY_BACK = 1.25
"""The band gets better only above a threshold times this, so that it does not change often."""


class Band(StrEnum):
    """A range for the number of tokens that would remain after a rewrite."""

    AMPLE = "ample"
    LOW = "low"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        """The band as a number; higher is worse."""
        return list(Band).index(self)


@dataclass(frozen=True)
class Thresholds:
    """The remaining tokens below which the bands low and critical begin."""

    low: int
    critical: int


def thresholds(total: int, low: int) -> Thresholds:
    """Return the thresholds `low` and half of it, but at most 20% and 10% of the total."""
    return Thresholds(low=min(low, total // 5), critical=min(low // 2, total // 10))


def band_after(band: Band, left: int, marks: Thresholds) -> Band:
    """Return the band for the `left` tokens; it is better than the last one only with a margin."""
    found = _band(left, marks, 1.0)
    if found.rank >= band.rank:
        return found
    return min(band, _band(left, marks, WAY_BACK), key=lambda one: one.rank)


def _band(left: int, marks: Thresholds, widened: float) -> Band:
    if left < marks.critical * widened:
        return Band.CRITICAL
    return Band.LOW if left < marks.low * widened else Band.AMPLE


def notice(remaining: int) -> str:
    """Return the notice that older results will soon shrink."""
    return (
        f"[Budget Alert: ~{_thousands(remaining)} tokens remaining, then older results shrink to "
        "a line each; recall_result brings any of them back.]"
    )


def warning(left: int) -> str:
    """Return the warning that even a rewrite will leave little."""
    return (
        f"[Budget Alert: ~{_thousands(left)} tokens remaining. "
        "Consider summarizing or completing soon.]"
    )


@lru_cache(maxsize=16)
def alert_estimates(total: int, family: Family) -> tuple[int, int]:
    """Return the estimated tokens of the longest warning and notice for a total limit."""
    return family.estimate(warning(total)), family.estimate(notice(total))


def _thousands(tokens: int) -> str:
    return f"{max(0, tokens) // 1000}k"
