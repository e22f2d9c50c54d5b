"""The bounds a session's prompt is held to, under the model in use."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from efrit_budget.budget import bands
from efrit_budget.budget.calibration import Calibration
from efrit_budget.budget.estimate import estimate
from efrit_budget.budget.models import Model
from efrit_budget.budget.tiers import Limits, Tier
from efrit_budget.window.head import (
    LINE_TOKENS,
    SHARE,
    bare_head,
    gone_turns,
    lines_cost,
    title_and_rest,
)
from efrit_budget.window.pieces import Phase, Piece, State
from efrit_budget.window.plan import Frame, cost_in, tier_of
from efrit_budget.window.record import Window, calibration_of

MOST_TURNS = 99_999
"""For the size of a text that says how many turns left."""
HINT_RESERVE = 40
"""Tokens by which the hints in the tools' descriptions may grow in a rewrite."""

REMEMBERED = 64_000
"""Characters of the longest text whose estimate is remembered."""


@lru_cache(maxsize=32)
def _remembered(text: str) -> int:
    """The same few texts are counted again and again while a result is cut to its allowance."""
    return estimate(text)


@dataclass(frozen=True)
class Bounds:
    """What a prompt's costs are counted with, and held to."""

    limits: Limits
    model: Model
    calibration: Calibration

    @property
    def reply_limit(self) -> int:
        """The largest reply: within the reserve, and what the model can write."""
        return max(1, min(self.limits.response, self.model.max_output))

    @property
    def prompt_limit(self) -> int:
        """The largest prompt: by the session's limits, and by the model's window."""
        return min(self.limits.prompt, self.model.window - self.reply_limit)

    @cached_property
    def plan_limit(self) -> int:
        """The same without what alerts and hints may add after a plan is made."""
        alerts = bands.warning(self.limits.total), bands.notice(self.limits.total)
        return self.prompt_limit - sum(map(self.cost, alerts)) - HINT_RESERVE

    @cached_property
    def head_limit(self) -> int:
        """What the lines of turns that left may take."""
        return max(self.limits.history // SHARE, self.cost(bare_head(MOST_TURNS)))

    def raw(self, text: str) -> int:
        """What a text costs, before calibration."""
        return _remembered(text) if len(text) <= REMEMBERED else estimate(text)

    def cost(self, text: str) -> int:
        """A text in this model's tokens."""
        return self.calibration.tokens(self.raw(text))

    def frame(self, connection: sqlite3.Connection, window: Window) -> Frame:
        """What a plan works within."""
        return Frame(
            limits=self.limits,
            prompt_limit=self.plan_limit,
            fixed=self.calibration.tokens(window.system_raw),
            low_water=self.limits.low_water,
            gone=gone_turns(connection, window.session_id),
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
    """The bounds under a model; an unknown one gets the safe defaults."""
    model = model_named(model_name or "")
    calibration = calibration_of(connection, model.name, model.factor)
    return Bounds(limits, model, calibration)


def used_now(pieces: Sequence[Piece], window: Window, bounds: Bounds) -> dict[Tier, int]:
    """What each tier holds as the window stands."""
    used = dict.fromkeys(Tier, 0)
    used[Tier.SYSTEM] = bounds.calibration.tokens(window.system_raw)
    used[Tier.HISTORY] = bounds.calibration.tokens(window.head_raw)
    for piece in pieces:
        used[tier_of(piece, piece.state)] += cost_in(piece, piece.state)
    return used


def least(pieces: Sequence[Piece], window: Window, bounds: Bounds) -> int:
    """The smallest prompt there can be: the latest request, the turn in hand, and the pins.

    A pin holds its whole turn; what is beside it there can shrink, and cannot leave.
    """
    requests = [piece for piece in pieces if piece.phase is Phase.REQUEST]
    held = {piece.turn for piece in pieces if piece.pinned} | {window.turn_ended}
    kept = [
        piece.tokens if piece.pinned and piece.state is State.FULL else piece.least
        for piece in pieces
        if piece.turn in held and piece.phase >= Phase.REPLY
    ]
    fixed = bounds.calibration.tokens(window.system_raw) + bounds.head_limit
    return fixed + sum(piece.tokens for piece in requests[-1:]) + sum(kept)
