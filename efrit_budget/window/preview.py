"""What the next model call would hold and cost, found out without keeping anything of it."""

from __future__ import annotations

import sqlite3

from efrit_budget.budget.prices import dollars
from efrit_budget.errors import Json
from efrit_budget.window.begin import Begun
from efrit_budget.window.frame import Bounds
from efrit_budget.window.pieces import State

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


def previewed(
    begun: Begun, bounds: Bounds, shrinking: list[Json], budget: dict[str, Json]
) -> dict[str, Json]:
    """What is told of a turn that was begun to look at it alone."""
    prompt = sum(tier["used"] for tier in budget["tiers"].values())
    name = bounds.model.name
    return {
        "prompt": prompt,
        "epoch": begun.window.epoch,
        "rewritten": begun.rewritten,
        "shrinking": shrinking,
        "notes": list(begun.notes),
        "dollars": {
            "prompt": dollars(name, {"input_tokens": prompt}),
            "longest_reply": dollars(name, {"output_tokens": bounds.reply_limit}),
        },
        "budget": budget,
    }
