"""The bounds of a session's prompt for a model."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from sqlite3 import Connection

from efrit_budget.budget import bands
from efrit_budget.budget.calibration import Calibration
from efrit_budget.budget.endpoint import stored_endpoint
from efrit_budget.budget.families import Family, family_named
from efrit_budget.budget.models import Model
from efrit_budget.budget.tiers import Limits, Tier
from efrit_budget.conversation import segments
from efrit_budget.conversation.blocks import block_estimate
from efrit_budget.conversation.evicted import (
    LINE_TOKENS,
    SHARE,
    lines_cost,
    short_head,
    title_and_rest,
)
from efrit_budget.conversation.plan import Frame
from efrit_budget.conversation.windows import Window, calibration_of
from efrit_budget.errors import JsonObject

MOST_TURNS = 99_999
"""The number of evicted turns for which the title of their lines has room."""
HINT_RESERVE = 40
"""Tokens by which the hints in the tools' descriptions may grow in a rewrite."""
COUNTED_WHOLE = 100_000
"""The most characters of a text that `cost_to_cut` counts whole; longer texts are sampled."""


@dataclass(frozen=True)
class Bounds:
    """Limits, model, family of tokenizers and calibration of a prompt."""

    session_limits: Limits
    limits: Limits
    """The limits of the session, fitted to the model's window and to the prefix."""
    model: Model
    family: Family
    """The family in which the texts of the window are estimated."""
    calibration: Calibration

    reply_limit: int
    """The most tokens of a reply."""
    prompt_limit: int
    """The most tokens of a prompt, by the limits and the model's window."""
    around_a_result: int
    """The tokens that each result takes in the prompt besides those of its text."""

    plan_limit: int
    """The most tokens of a planned prompt: `prompt_limit` less the room for alerts and hints."""

    def with_prefix(self, system_raw: int) -> Bounds:
        """Return the bounds for a prefix whose estimate is `system_raw`."""
        return _make_bounds(
            self.session_limits, self.model, self.family, self.calibration, system_raw
        )

    def scaling_notes(self, withheld: int) -> tuple[str, ...]:
        """Return a note that the model's window is below the session's total, or none.

        `withheld` is the number of tools that are not offered for that reason.
        """
        if self.limits.total == self.session_limits.total:
            return ()
        tools = f" {withheld} tools are not offered." if withheld else ""
        note = (
            f"{self.model.name} has a window of {self.model.window:,} tokens, less than the budget "
            f"of {self.session_limits.total:,}. The budget is scaled to it: "
            f"{self.prompt_limit:,} for the prompt, {self.reply_limit:,} for a reply, and at most "
            f"{self.limits.per_tool_default:,} for a tool's result.{tools}"
        )
        return (note,)

    @cached_property
    def lines_limit(self) -> int:
        """The most tokens of the lines of evicted turns."""
        return max(self.limits.tiers[Tier.HISTORY] // SHARE, self.cost(short_head(MOST_TURNS)))

    @property
    def index_limit(self) -> int:
        """The most tokens of the index of names."""
        return int(self.limits.tiers[Tier.HISTORY] * self.limits.index_share)

    def cost(self, text: str) -> int:
        """Return the tokens of a text for this model, estimated from all of it."""
        return self.calibration.tokens(self.family.estimate(text))

    def rough(self, text: str) -> int:
        """Return the tokens of a text, estimated from samples: fast, for finding a cut."""
        return self.calibration.tokens(self.family.rough(text))

    def block_cost(self, block: JsonObject) -> int:
        """Return the tokens of a content block for this model."""
        return self.calibration.tokens(block_estimate(block, self.family))

    def cost_to_cut(self, text: str) -> int:
        """Return the tokens of a text, for a tool that cuts its answer; sample only long texts."""
        return self.cost(text) if len(text) <= COUNTED_WHOLE else self.rough(text)

    def frame(self, connection: Connection, window: Window) -> Frame:
        """Return the limits and costs with which a rewrite of the window is planned."""
        return Frame(
            limits=self.limits,
            prompt_limit=self.plan_limit,
            fixed=self.calibration.tokens(window.system_raw),
            low_water=self.limits.low_water,
            recent_turns=self.limits.recent_turns,
            recent_share=max(self.limits.low_water, self.limits.recent_share),
            gone=segments.count_evicted(connection, window.session_id),
            title=lines_cost(title_and_rest(MOST_TURNS), self.cost),
            line=LINE_TOKENS,
            lines_limit=self.lines_limit,
            index_limit=self.index_limit,
            notice=self.cost(bands.notice(self.limits.total)),
        )


def bounds_of(
    connection: Connection,
    limits: Limits,
    window: Window,
    model_named: Callable[[str], Model],
) -> Bounds:
    """Return the bounds for the model and the endpoint of a window; unknown models get defaults.

    The family is the one in which the window's texts are estimated; a window without texts has
    that of the model.
    """
    endpoint = stored_endpoint(window.endpoint)
    model = endpoint.limit(model_named(window.model or ""))
    calibration = calibration_of(connection, model.name, model.factor, endpoint.provider)
    family = window.family if window.turn or window.model is None else model.family
    if window.model is None:
        model = replace(model, window=max(model.window, limits.total))
    return _make_bounds(limits, model, family_named(family), calibration, window.system_raw)


def _make_bounds(
    session_limits: Limits,
    model: Model,
    family: Family,
    calibration: Calibration,
    system_raw: int,
) -> Bounds:
    limits = session_limits.fitted(model.window, calibration.tokens(system_raw))
    response = limits.tiers[Tier.RESPONSE]
    reply = max(1, min(response, model.max_output))
    prompt = min(limits.total - response, model.window - reply)
    alerts = sum(map(calibration.tokens, bands.alert_estimates(limits.total, family)))
    return Bounds(
        session_limits,
        limits,
        model,
        family,
        calibration,
        reply_limit=reply,
        prompt_limit=prompt,
        around_a_result=math.ceil(calibration.frame),
        plan_limit=prompt - alerts - HINT_RESERVE,
    )
