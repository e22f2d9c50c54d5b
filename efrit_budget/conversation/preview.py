"""Preview the next request without storing anything."""

from __future__ import annotations

import json
import sqlite3

from efrit_budget.budget.calibration import counts_of
from efrit_budget.budget.models import Model
from efrit_budget.budget.prices import dollars
from efrit_budget.conversation import calls, turns
from efrit_budget.conversation.begin import BegunTurn
from efrit_budget.conversation.bounds import Bounds
from efrit_budget.conversation.pieces import PieceState
from efrit_budget.conversation.windows import Window
from efrit_budget.errors import JsonObject
from efrit_budget.results.tokens import handle

CACHED = ("cache_read_input_tokens", "cache_creation_input_tokens")


def full_results(connection: sqlite3.Connection, session_id: str) -> dict[int, JsonObject]:
    """Return the results in full in the window, by number."""
    return {
        row["number"]: {
            "handle": handle(row["number"]),
            "tool": row["tool"],
            "tokens": row["tokens"],
        }
        for row in calls.with_results(connection, session_id)
        if row["state"] == PieceState.FULL
    }


def cached_tokens(connection: sqlite3.Connection, window: Window, model: Model) -> int | None:
    """Return how many tokens the cache holds, or None if nothing is cached.

    The latest reply tells, whose whole prompt was written or read: what it had, the next prompt
    begins with, as long as the epoch is the same.
    """
    row = turns.latest_with_usage(connection, window.session_id)
    counts = counts_of(json.loads(row["usage"])) if row is not None else {}
    cached_count = sum(counts.get(name, 0) for name in CACHED)
    if row is None or row["model"] != model.name:
        return 0
    if not cached_count and counts.get("input_tokens", 0) >= model.least_cacheable:
        return None
    return cached_count if row["epoch"] == window.epoch else 0


def preview_reply(
    begun: BegunTurn,
    bounds: Bounds,
    shrinking: list[JsonObject],
    budget: JsonObject,
    held: int | None,
) -> JsonObject:
    """Return the reply of `turn/preview`.

    `held` is what the cache has of the last prompt, None where nothing is cached.
    """
    prompt = sum(tier["used"] for tier in budget["tiers"].values())
    read = min(held or 0, 0 if begun.rewritten else prompt)
    name = bounds.model.name
    plain = held is None or prompt < bounds.model.least_cacheable
    new = "input_tokens" if plain else "cache_creation_input_tokens"
    return {
        "prompt": prompt,
        "cached": read,
        "epoch": begun.window.epoch,
        "rewritten": begun.rewritten,
        "shrinking": shrinking,
        "notes": list(begun.notes),
        "dollars": {
            "prompt": dollars(name, {new: prompt - read, "cache_read_input_tokens": read}),
            "prompt_expired": dollars(name, {new: prompt}),
            "longest_reply": dollars(name, {"output_tokens": bounds.reply_limit}),
        },
        "budget": budget,
    }
