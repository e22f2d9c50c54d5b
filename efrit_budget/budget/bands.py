"""The bands of a budget, and the texts that tell the model about them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from efrit_budget.budget.estimate import estimate

WAY_BACK = 1.25
"""A band is left upwards only at this multiple of its threshold, so that it does not flutter."""


class Band(StrEnum):
    """A range of tokens that would remain even after a rewrite."""

    AMPLE = "ample"
    LOW = "low"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        """The band as a number; higher is worse."""
        return list(Band).index(self)


@dataclass(frozen=True)
class Thresholds:
    """The token counts at which the lower bands begin."""

    low: int
    critical: int


def thresholds(total: int, low: int) -> Thresholds:
    """Return the configured threshold and half of it, at most 20% and 10% of the total."""
    return Thresholds(low=min(low, total // 5), critical=min(low // 2, total // 10))


def band_after(band: Band, left: int, marks: Thresholds) -> Band:
    """Return the band for the remaining tokens, given the previous band."""
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
def alert_estimates(total: int) -> tuple[int, int]:
    """Return the estimates of the longest warning and notice under a total."""
    return estimate(warning(total)), estimate(notice(total))


def _thousands(tokens: int) -> str:
    return f"{max(0, tokens) // 1000}k"
