"""What every answer from memory has in common: the lines that end it."""

from __future__ import annotations

from typing import Literal

Detail = Literal["summary", "standard", "full"]
"""How much of each thing is told: a line, its beginning, or all of it."""

RESULTS = "results. Use limit or mem_get_observation #ID for more."
OBSERVATIONS = "observations. Increase limit or use mem_get_observation #ID for details."
IN_SESSION = "observations in session."
ARTIFACTS = "artifacts. Increase limit for more."
FINDINGS = "findings. Increase limit for more."


def navigation_hint(showing: int, total: int, hint: str) -> str:
    """The line that says how much of it all is shown; empty where that is everything."""
    return f"Showing {showing:,} of {total:,} {hint}" if showing < total else ""


def budget_line(tokens: int, budget: int, shown: int, total: int, noun: str) -> str:
    """The line of an answer that its budget has cut."""
    return (
        f"⚡ Budget: ~{tokens:,}/{budget:,} tokens used. {shown:,} of {total:,} {noun} shown."
        " Increase max_tokens or use detail_level=summary for more."
    )
