"""The bounds of a session's prompt for a model."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

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
from efrit_budget.conversation.pieces import Phase, Piece, PieceState
from efrit_budget.conversation.plan import Frame, cost_in, tier_of
from efrit_budget.conversation.windows import Window, calibration_of

MOST_TURNS = 99_999
"""For the size of a text that says how many turns left."""
HINT_RESERVE = 40
"""Tokens by which the hints in the tools' descriptions may grow in a rewrite."""

COUNTED_WHOLE = 100_000
"""Characters of the longest text that is counted whole while only a cut is looked for."""


@dataclass(frozen=True)
class Bounds:
    """Limits, model and calibration of a prompt."""

    limits: Limits
    model: Model
    calibration: Calibration

    @property
    def reply_limit(self) -> int:
        """The largest reply."""
        return max(1, min(self.limits.of(Tier.RESPONSE), self.model.max_output))

    @property
    def prompt_limit(self) -> int:
        """The largest prompt, by the limits and the model's window."""
        return min(self.limits.prompt, self.model.window - self.reply_limit)

    @cached_property
    def plan_limit(self) -> int:
        """The largest planned prompt, with room for alerts and hints."""
        alerts = bands.warning(self.limits.total), bands.notice(self.limits.total)
        return self.prompt_limit - sum(map(self.cost, alerts)) - HINT_RESERVE

    @cached_property
    def around_a_result(self) -> int:
        """Return the cost of a result beside its text."""
        return math.ceil(self.calibration.frame)

    @cached_property
    def head_limit(self) -> int:
        """The largest size of the lines of evicted turns."""
        return max(self.limits.of(Tier.HISTORY) // SHARE, self.cost(short_head(MOST_TURNS)))

    def raw(self, text: str) -> int:
        """Return a text's estimate."""
        return estimate(text)

    def cost(self, text: str) -> int:
        """A text in this model's tokens, counted whole."""
        return self.calibration.tokens(self.raw(text))

    def rough(self, text: str) -> int:
        """The same by samples, for looking where to cut; what is kept is counted by `cost`."""
        return self.calibration.tokens(sampled(text))

    def cost_to_cut(self, text: str) -> int:
        """Return the cost by which a tool cuts its answer; only overlong texts are sampled."""
        return self.cost(text) if len(text) <= COUNTED_WHOLE else self.rough(text)

    def frame(self, connection: sqlite3.Connection, window: Window) -> Frame:
        """Return the frame of a plan."""
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
    connection: sqlite3.Connection,
    limits: Limits,
    model_name: str | None,
    model_named: Callable[[str], Model],
) -> Bounds:
    """Return the bounds for a model, with safe defaults if it is unknown."""
    model = model_named(model_name or "")
    calibration = calibration_of(connection, model.name, model.factor)
    return Bounds(limits, model, calibration)


def used_by_tier(pieces: Sequence[Piece], window: Window, bounds: Bounds) -> dict[Tier, int]:
    """Return what each tier holds now."""
    used = dict.fromkeys(Tier, 0)
    used[Tier.SYSTEM] = bounds.calibration.tokens(window.system_raw)
    used[Tier.HISTORY] = bounds.calibration.tokens(window.head_raw)
    for piece in pieces:
        used[tier_of(piece, piece.state)] += cost_in(piece, piece.state)
    return used


def least_prompt(pieces: Sequence[Piece], window: Window, bounds: Bounds) -> int:
    """Return the smallest possible prompt: latest message, current turn and pins.

    A pin holds its whole turn; what is beside it there can shrink, and cannot leave.
    """
    requests = [piece for piece in pieces if piece.phase is Phase.REQUEST]
    pinned_turns = {piece.turn for piece in pieces if piece.pinned} | {window.turn_ended}
    costs = [
        piece.tokens if piece.pinned and piece.state is PieceState.FULL else piece.least
        for piece in pieces
        if piece.turn in pinned_turns and piece.phase >= Phase.REPLY
    ]
    fixed = bounds.calibration.tokens(window.system_raw) + bounds.head_limit
    return fixed + sum(piece.tokens for piece in requests[-1:]) + sum(costs)
