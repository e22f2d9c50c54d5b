"""The tiers of a session's window, and the limits of a session."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from efrit_budget.errors import InvalidParamsError, JsonObject

DEFAULT_TOTAL = 100_000
MOST_TOKENS = 10_000_000
ROUND = 100
"""The system tier grows in steps of so many tokens, so that it does not change each turn."""

AtLeastOne = Annotated[int, Field(ge=1, le=MOST_TOKENS)]
AtLeastNone = Annotated[int, Field(ge=0, le=MOST_TOKENS)]


class Tier(StrEnum):
    """A share of the window: its name, its default size, and what it holds.

    Settings, limits, snapshots and documents have a member for each tier from here.
    """

    SYSTEM = "system", 8_000, "System prompt and tool schemas"
    HISTORY = "history", 12_000, "The model's own turns, shrunken results, lines of evicted turns"
    TOOL_RESULTS = "tool_results", 40_000, "Results in the window in full"
    USER_MESSAGE = "user_message", 10_000, "The person's requests and their context"
    RESPONSE = "response", 30_000, "The reserve for the reply, never lent out"

    default: int
    holds: str

    def __new__(cls, name: str, default: int, holds: str) -> Tier:
        """Make the tier, whose value is its name."""
        tier = str.__new__(cls, name)
        tier._value_ = name
        tier.default = default
        tier.holds = holds
        return tier


PROMPT_TIERS = tuple(tier for tier in Tier if tier is not Tier.RESPONSE)


@dataclass(frozen=True)
class Limits:
    """The limits of one session's window, in tokens; the tiers fit the total.

    The settings `budget.*` are these members, and one for each tier.
    """

    total: Annotated[
        int,
        Field(
            ge=1_000,
            le=MOST_TOKENS,
            description="The whole budget: the prompt and the reserve for the reply.",
        ),
    ] = DEFAULT_TOTAL
    tiers: Mapping[Tier, int] = field(default_factory=lambda: tier_sizes(DEFAULT_TOTAL, {}))
    per_tool_default: Annotated[
        AtLeastOne, Field(description="The most that one tool call may deliver.")
    ] = 8_000
    per_tool: Annotated[
        Mapping[str, AtLeastOne], Field(description="The same for single tools, by name.")
    ] = field(default_factory=dict)
    floor: Annotated[
        AtLeastOne,
        Field(description="What a call is granted even when the window is under pressure."),
    ] = 500
    low_water: Annotated[
        float,
        Field(
            gt=0,
            le=1,
            allow_inf_nan=False,
            description="The share of their tier that full results keep after a compaction.",
        ),
    ] = 0.1
    recent_turns: Annotated[
        int,
        Field(
            ge=0,
            le=1_000,
            description="The latest turns; results that were used in them stay longer in full.",
        ),
    ] = 3
    recent_share: Annotated[
        float,
        Field(
            gt=0,
            le=1,
            allow_inf_nan=False,
            description="The share of their tier that full results may keep after a compaction if "
            "they were used lately.",
        ),
    ] = 0.6
    index_share: Annotated[
        float,
        Field(
            ge=0,
            le=0.5,
            allow_inf_nan=False,
            description="The share of the history tier for the names in results that a compaction "
            "has shrunk or evicted; 0: names are not listed.",
        ),
    ] = 0.4
    patience: Annotated[
        float,
        Field(
            ge=0,
            le=1_000,
            allow_inf_nan=False,
            description="How many times the price of a compaction may be spent on reading what it "
            "would free, before it is made; 0: only a full prompt is compacted.",
        ),
    ] = 5.5
    warning_threshold: Annotated[
        AtLeastNone,
        Field(
            description="Remaining tokens below which the model is warned; at most a fifth of the "
            "total counts."
        ),
    ] = 20_000

    def fitted(self, window: int, system: int) -> Limits:
        """Return the limits for a model's window, in which the system tier has `system` tokens.

        The other tiers share the rest in proportion. Below the total, the reserve for the reply
        and what a tool call may deliver shrink as well. Limits that fit the window stay as they
        are if their system tier is large enough, or if their tiers were chosen one by one.
        """
        total = min(self.total, window)
        scaled_system = self.tiers[Tier.SYSTEM] * total // self.total
        needed = max(scaled_system, math.ceil(system / ROUND) * ROUND)
        if total < self.total:
            return self._shrunken(total, needed, self.total - self.tiers[Tier.SYSTEM])
        if needed == scaled_system or self.tiers != tier_sizes(self.total, {}):
            return self
        room = total - self.tiers[Tier.RESPONSE]
        tiers = self._shrunken(room, needed, room - self.tiers[Tier.SYSTEM]).tiers
        return replace(self, tiers={**tiers, Tier.RESPONSE: self.tiers[Tier.RESPONSE]})

    def _shrunken(self, total: int, system: int, others: int) -> Limits:
        """Return limits whose tiers but the system tier, of `others` tokens now, share the rest."""
        rest = max(0, total - system)
        sizes = {tier: size * rest // others for tier, size in self.tiers.items()}
        return replace(
            self,
            total=total,
            tiers=sizes | {Tier.SYSTEM: system},
            per_tool_default=max(1, self.per_tool_default * rest // others),
            per_tool={name: max(1, most * rest // others) for name, most in self.per_tool.items()},
            floor=max(1, self.floor * rest // others),
        )

    def shares(self, total: int) -> dict[Tier, int | None]:
        """Return the size of each tier for another total; None is its default size."""
        if total != self.total and self.tiers == tier_sizes(self.total, {}):
            return dict.fromkeys(Tier)
        return {tier: size * total // self.total for tier, size in self.tiers.items()}

    def as_dict(self) -> JsonObject:
        """Return the limits by name, each tier among them."""
        named = {each.name: getattr(self, each.name) for each in fields(self)}
        sizes = named.pop("tiers")
        return {"total": self.total, **{str(tier): sizes[tier] for tier in Tier}, **named}


def scaled(total: int, tier: Tier) -> int:
    """Return the default size of a tier, scaled to another total."""
    return total * tier.default // DEFAULT_TOTAL


def tier_sizes(total: int, chosen: Mapping[Tier, int | None]) -> dict[Tier, int]:
    """Return the size of each tier, chosen or scaled; raise if all exceed the total."""
    sizes = {tier: scaled(total, tier) for tier in Tier}
    if chosen.get(Tier.RESPONSE) is None:  # the response gets the tokens that rounding leaves
        sizes[Tier.RESPONSE] = total - sum(sizes[tier] for tier in PROMPT_TIERS)
    sizes |= {tier: size for tier, size in chosen.items() if size is not None}
    if sum(sizes.values()) > total:
        raise _too_large_error(total, sizes)
    return sizes


def _too_large_error(total: int, sizes: Mapping[Tier, int]) -> InvalidParamsError:
    parts = " + ".join(f"{tier} {size:,}" for tier, size in sizes.items())
    problem = f"the tiers make {sum(sizes.values()):,}, more than the total {total:,}: {parts}"
    return InvalidParamsError(
        f"limits: {problem}", data={"fields": [{"field": "limits", "problem": problem}]}
    )
