"""How full a prompt is, in the words by which every view colours its gauge."""

from enum import StrEnum

NEARLY = 0.8
"""The share of its limit above which a prompt is nearly full."""


class Fill(StrEnum):
    """A range for the share of its limit that a prompt takes."""

    AMPLE = "ample"
    LOW = "low"
    FULL = "full"


def fill_of(used: int, limit: int) -> Fill:
    """Return how full a prompt of `used` tokens is; full, it is rewritten before it is sent."""
    if used >= limit:
        return Fill.FULL
    return Fill.LOW if used > NEARLY * limit else Fill.AMPLE
