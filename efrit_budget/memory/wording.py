"""What every answer from memory has in common: how it is priced, and the lines that end it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from efrit_budget.budget.plain import plain_tokens_ceil

Cost = Callable[[str], int]
Detail = Literal["summary", "standard", "full"]
"""How much of each thing is told: a line, its beginning, or all of it."""

RESULTS = "results. Use limit or mem_get_observation #ID for more."
OBSERVATIONS = "observations. Increase limit or use mem_get_observation #ID for details."
IN_SESSION = "observations in session."


def navigation_hint(showing: int, total: int, hint: str) -> str:
    """The line that says how much of it all is shown; empty where that is everything."""
    return f"Showing {showing:,} of {total:,} {hint}" if showing < total else ""


def budget_line(tokens: int, budget: int, shown: int, total: int, noun: str) -> str:
    """The line of an answer that its budget has cut."""
    return (
        f"⚡ Budget: ~{tokens:,}/{budget:,} tokens used. {shown:,} of {total:,} {noun} shown."
        " Increase max_tokens or use detail_level=summary for more."
    )


def dearest(cost: Cost) -> Cost:
    """The price by which an answer fits its budget however it is counted.

    Plain English costs less than a quarter of its bytes, by which others estimate.
    """
    return lambda text: max(cost(text), plain_tokens_ceil(text))
