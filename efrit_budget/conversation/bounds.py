"""The bounds of a session's prompt for a model."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from sqlite3 import Connection

from efrit_budget.budget import bands
from efrit_budget.budget.calibration import Calibration
from efrit_budget.budget.estimate import estimate, sampled
from efrit_budget.budget.models import Model
from efrit_budget.budget.tiers import Limits, Tier
from efrit_budget.conversation import segments
from efrit_budget.conversation.evicted import (
    LINE_TOKENS,
    SHARE,
    lines_cost,
    short_head,
    title_and_rest,
)
from efrit_budget.conversation.plan import Frame
from efrit_budget.conversation.windows import Window, calibration_of

MOST_TURNS = 99_999
"""The number of evicted turns for which the title of their lines has room."""
HINT_RESERVE = 40
"""Tokens by which the hints in the tools' descriptions may grow in a rewrite."""
COUNTED_WHOLE = 100_000
"""The most characters of a text that `cost_to_cut` counts whole; longer texts are sampled."""


@dataclass(frozen=True)
class Bounds:
    """Limits, model and calibration of a prompt."""

    limits: Limits
    model: Model
    calibration: Calibration

    reply_limit: int
    """The most tokens of a reply."""
    prompt_limit: int
    """The most tokens of a prompt, by the limits and the model's window."""
    around_a_result: int
    """The tokens that each result takes in the prompt besides those of its text."""

    plan_limit: int
    """The most tokens of a planned prompt: `prompt_limit` less the room for alerts and hints."""

    @cached_property
    def head_limit(self) -> int:
        """The most tokens of the lines of evicted turns."""
        return max(self.limits.of(Tier.HISTORY) // SHARE, self.cost(short_head(MOST_TURNS)))

    def cost(self, text: str) -> int:
        """Return the tokens of a text for this model, estimated from all of it."""
        return self.calibration.tokens(estimate(text))

    def rough(self, text: str) -> int:
        """Return the tokens of a text, estimated from samples: fast, for finding a cut."""
        return self.calibration.tokens(sampled(text))

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
            gone=segments.count_evicted(connection, window.session_id),
            title=lines_cost(title_and_rest(MOST_TURNS), self.cost),
            line=LINE_TOKENS,
            head_limit=self.head_limit,
            notice=self.cost(bands.notice(self.limits.total)),
        )


def bounds_of(
    connection: Connection,
    limits: Limits,
    model_name: str | None,
    model_named: Callable[[str], Model],
) -> Bounds:
    """Return the bounds for a model, with safe defaults if it is unknown."""
    model = model_named(model_name or "")
    calibration = calibration_of(connection, model.name, model.factor)
    response = limits.tiers[Tier.RESPONSE]
    reply = max(1, min(response, model.max_output))
    prompt = min(limits.total - response, model.window - reply)
    alerts = sum(map(calibration.tokens, bands.alert_estimates(limits.total)))
    return Bounds(
        limits,
        model,
        calibration,
        reply_limit=reply,
        prompt_limit=prompt,
        around_a_result=math.ceil(calibration.frame),
        plan_limit=prompt - alerts - HINT_RESERVE,
    )
