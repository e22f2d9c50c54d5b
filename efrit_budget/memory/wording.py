"""The last lines of results from memory."""

from typing import Literal

from efrit_budget.results.footer import showing

Detail = Literal["summary", "standard", "full"]
"""The length of each observation in a result: a line, its beginning, or all of it."""

RESULTS = "results. Use limit or mem_get_observation #ID for more."
OBSERVATIONS = "observations. Increase limit or use mem_get_observation #ID for details."
IN_SESSION = "observations in session."
ARTIFACTS = "artifacts. Increase limit for more."
FINDINGS = "findings. Increase limit for more."


def navigation_hint(shown: int, total: int, hint: str) -> str:
    """Return the line that says how many of all are shown, empty if all are."""
    return showing(f"{shown:,} of", total, hint) if shown < total else ""


def budget_line(tokens: int, budget: int, shown: int, total: int, noun: str) -> str:
    """Return the line of a result that was cut to its budget."""
    return (
        f"⚡ Budget: ~{tokens:,}/{budget:,} tokens used. {shown:,} of {total:,} {noun} shown."
        " Increase max_tokens or use detail_level=summary for more."
    )
