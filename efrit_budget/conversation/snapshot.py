"""The state of the budget at one moment, as the wire carries it."""

from __future__ import annotations

from collections.abc import Sequence

from efrit_budget.budget.bands import Band
from efrit_budget.budget.tiers import Tier
from efrit_budget.conversation.bounds import Bounds, used_by_tier
from efrit_budget.conversation.pieces import Piece
from efrit_budget.conversation.windows import Window
from efrit_budget.errors import JsonObject


def snapshot(pieces: Sequence[Piece], window: Window, bounds: Bounds) -> JsonObject:
    """Return the budget as the wire carries it."""
    used = used_by_tier(pieces, window, bounds)
    if not window.turn:
        used[Tier.TOOL_RESULTS] += window.turn_tokens
    total = sum(used.values())
    remaining = max(0, bounds.prompt_limit - total)
    after_rewrite = min(total, window.kept + window.turn_tokens) if window.turn else total
    return {
        "tiers": {
            str(tier): {"used": used[tier], "limit": bounds.limits.of(tier)} for tier in Tier
        },
        "total": bounds.limits.total,
        "prompt_limit": bounds.prompt_limit,
        "remaining": remaining,
        "reclaimable": total - after_rewrite,
        "available_for_tools": max(0, bounds.prompt_limit - after_rewrite),
        "band": str(Band(window.band)),
        "calibration": {"model": window.model, **bounds.calibration.as_dict()},
        "epoch": window.epoch,
        "turn": window.turn,
        "summary": _summary(used, total, bounds),
    }


def _summary(used: dict[Tier, int], total: int, bounds: Bounds) -> str:
    """Return a one-line summary for people."""
    parts = [
        f"{tier.replace('_', ' ')} {used[tier]:,}/{bounds.limits.of(tier):,}"
        for tier in Tier
        if tier is not Tier.RESPONSE
    ]
    return f"{total:,} of {bounds.prompt_limit:,} tokens in the prompt: {', '.join(parts)}"
