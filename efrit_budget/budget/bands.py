"""The bands of a budget, and what the model is told when it enters one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

WAY_BACK = 1.25
"""A band is left upwards only at this multiple of its threshold, so that it does not flutter."""


class Band(StrEnum):
    """How much would be left even after compacting."""

    AMPLE = "ample"
    LOW = "low"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        """Higher is worse."""
        return list(Band).index(self)


@dataclass(frozen=True)
class Thresholds:
    """Below which the bands begin."""

    low: int
    critical: int


def thresholds(total: int, low: int) -> Thresholds:
    """The person's threshold and half of it; at most 20% and 10% of a smaller total."""
    return Thresholds(low=min(low, total // 5), critical=min(low // 2, total // 10))


def band_after(band: Band, left: int, marks: Thresholds) -> Band:
    """The band for what would be left, coming from `band`."""
    found = _band(left, marks, 1.0)
    if found.rank >= band.rank:
        return found
    return min(band, _band(left, marks, WAY_BACK), key=lambda one: one.rank)


def _band(left: int, marks: Thresholds, widened: float) -> Band:
    if left < marks.critical * widened:
        return Band.CRITICAL
    return Band.LOW if left < marks.low * widened else Band.AMPLE


def notice(remaining: int) -> str:
    """What is said once before older results shrink."""
    return (
        f"[Budget Alert: ~{_thousands(remaining)} tokens remaining, then older results shrink to "
        "a line each; recall_result brings any of them back.]"
    )


def warning(left: int) -> str:
    """What is said when even shrinking will leave little."""
    return (
        f"[Budget Alert: ~{_thousands(left)} tokens remaining. "
        "Consider summarizing or completing soon.]"
    )


def _thousands(tokens: int) -> str:
    return f"{max(0, tokens) // 1000}k"
