"""What the next model call would hold and cost, found out without keeping anything of it."""

from __future__ import annotations

import json
import sqlite3

from efrit_budget.budget.calibration import counts_of
from efrit_budget.budget.models import Model
from efrit_budget.budget.prices import dollars
from efrit_budget.errors import Json
from efrit_budget.window.begin import Begun
from efrit_budget.window.frame import Bounds
from efrit_budget.window.pieces import State
from efrit_budget.window.record import Window

CACHED = ("cache_read_input_tokens", "cache_creation_input_tokens")

SHRINKS = (
    "SELECT number, tool, tokens FROM calls WHERE session_id = ? AND state = ? ORDER BY number"
)


def full_results(connection: sqlite3.Connection, session_id: str) -> dict[int, dict[str, Json]]:
    """The results that stand in the window in full, by number."""
    rows = connection.execute(SHRINKS, (session_id, State.FULL)).fetchall()
    return {
        row["number"]: {
            "handle": f"r{row['number']}",
            "tool": row["tool"],
            "tokens": row["tokens"],
        }
        for row in rows
        if row["number"] is not None
    }


def cached(connection: sqlite3.Connection, window: Window, model: Model) -> int | None:
    """How many tokens the cache holds of what was sent last; None where nothing is cached.

    The latest reply tells, whose whole prompt was written or read: what it had, the next prompt
    begins with, as long as the epoch is the same.
    """
    row = connection.execute(
        "SELECT epoch, model, usage FROM turns WHERE session_id = ? AND usage IS NOT NULL"
        " ORDER BY number DESC LIMIT 1",
        (window.session_id,),
    ).fetchone()
    counts = counts_of(json.loads(row["usage"])) if row is not None else {}
    held = sum(counts.get(name, 0) for name in CACHED)
    if row is None or row["model"] != model.name:
        return 0
    if not held and counts.get("input_tokens", 0) >= model.least_cacheable:
        return None
    return held if row["epoch"] == window.epoch else 0


def previewed(
    begun: Begun,
    bounds: Bounds,
    shrinking: list[Json],
    budget: dict[str, Json],
    held: int | None,
) -> dict[str, Json]:
    """What is told of a turn that was begun to look at it alone.

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
