"""The tiers of a session's window and their sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum

from efrit_budget.errors import InvalidParamsError, Json


class Tier(StrEnum):
    """A share of the window."""

    SYSTEM = "system"
    HISTORY = "history"
    TOOL_RESULTS = "tool_results"
    USER_MESSAGE = "user_message"
    RESPONSE = "response"


DEFAULT_TOTAL = 100_000
DEFAULT_TIERS = {
    Tier.SYSTEM: 8_000,
    Tier.HISTORY: 12_000,
    Tier.TOOL_RESULTS: 40_000,
    Tier.USER_MESSAGE: 10_000,
    Tier.RESPONSE: 30_000,
}
DEFAULT_PER_TOOL = 8_000
DEFAULT_FLOOR = 500
DEFAULT_LOW_WATER = 0.45
DEFAULT_WARNING = 20_000
PROMPT_TIERS = tuple(tier for tier in Tier if tier is not Tier.RESPONSE)


@dataclass(frozen=True)
class Limits:
    """The sizes of one session's window, in tokens; the tiers fit the total."""

    total: int
    system: int
    history: int
    tool_results: int
    user_message: int
    response: int
    per_tool_default: int = DEFAULT_PER_TOOL
    per_tool: Mapping[str, int] = field(default_factory=dict)
    floor: int = DEFAULT_FLOOR
    """What a result is granted even when little is left."""
    low_water: float = DEFAULT_LOW_WATER
    """The share of their tier that full results may keep after a compaction."""
    warning_threshold: int = DEFAULT_WARNING

    def of(self, tier: Tier) -> int:
        """Return the size of one tier."""
        return int(getattr(self, tier))

    @property
    def prompt(self) -> int:
        """The largest prompt: the total without the reserve for the reply."""
        return self.total - self.response

    def for_tool(self, name: str) -> int:
        """Return the largest allowance of one call of a tool."""
        return self.per_tool.get(name, self.per_tool_default)

    def as_dict(self) -> dict[str, Json]:
        """Return the limits by name."""
        return asdict(self)


def scaled(total: int, tier: Tier) -> int:
    """Return the default size of a tier, scaled to another total."""
    return total * DEFAULT_TIERS[tier] // DEFAULT_TOTAL


def tier_sizes(total: int, chosen: Mapping[Tier, int | None]) -> dict[str, int]:
    """Return the tiers scaled to the total, with those that were chosen; raise if too large."""
    sizes = {tier: scaled(total, tier) for tier in Tier}
    if chosen.get(Tier.RESPONSE) is None:  # rounding never leaves a token without a tier
        sizes[Tier.RESPONSE] = total - sum(sizes[tier] for tier in PROMPT_TIERS)
    sizes |= {tier: size for tier, size in chosen.items() if size is not None}
    if sum(sizes.values()) > total:
        raise _too_large_error(total, sizes)
    return {str(tier): size for tier, size in sizes.items()}


def _too_large_error(total: int, sizes: Mapping[Tier, int]) -> InvalidParamsError:
    parts = " + ".join(f"{tier} {size:,}" for tier, size in sizes.items())
    problem = f"the tiers make {sum(sizes.values()):,}, more than the total {total:,}: {parts}"
    return InvalidParamsError(
        f"limits: {problem}", data={"fields": [{"field": "limits", "problem": problem}]}
    )
