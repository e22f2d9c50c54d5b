"""How many real tokens one of our estimate is, learnt for each model from its replies."""

from __future__ import annotations

import math
from dataclasses import dataclass

from efrit_budget.errors import Json

LOWEST, HIGHEST = 0.5, 2.5
SMOOTHING = 0.3
FIRST_SMOOTHING = 0.6
"""The weight of the very first sample: what the table says of a model is only a guess."""
LEAST_ESTIMATE = 400
"""A smaller estimate says nothing about the ratio."""
ABSURD = 6.0
"""A sample this far off either way is a broken usage block, not a tokenizer."""


@dataclass(frozen=True)
class Calibration:
    """A model's factor, how many replies it comes from, and how far off the last ones were."""

    factor: float
    samples: int = 0
    error: float = 0.0

    def tokens(self, raw: float) -> int:
        """An estimate in this model's tokens."""
        return math.ceil(raw * self.factor)

    def after(self, raw: int, exact: int, true_prompt: int) -> Calibration:
        """What is known once a prompt of `raw` estimated and `exact` known tokens was counted.

        A sample that cannot be true leaves everything as it is.
        """
        estimated_share = true_prompt - exact
        if raw < LEAST_ESTIMATE or not raw / ABSURD < estimated_share < raw * ABSURD:
            return self
        weight = SMOOTHING if self.samples else FIRST_SMOOTHING
        moved = self.factor + weight * (estimated_share / raw - self.factor)
        missed = abs(self.tokens(raw) + exact - true_prompt) / true_prompt
        error = missed if not self.samples else self.error + weight * (missed - self.error)
        return Calibration(min(HIGHEST, max(LOWEST, moved)), self.samples + 1, error)

    def as_dict(self) -> dict[str, Json]:
        """The calibration as it goes over the wire."""
        return {
            "factor": round(self.factor, 4),
            "samples": self.samples,
            "recent_error": round(self.error, 4),
        }


PROMPT_COUNTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


def counts_of(usage: Json) -> dict[str, int]:
    """The counts of a `usage` block that can be true."""
    if not isinstance(usage, dict):
        return {}
    names = (*PROMPT_COUNTS, "output_tokens")
    return {name: usage[name] for name in names if _is_count(usage.get(name))}


def true_prompt_size(usage: Json) -> int | None:
    """The size of the prompt in an API's `usage` block; None where it cannot be told."""
    if not isinstance(usage, dict):
        return None
    counts = [usage.get(name) or 0 for name in PROMPT_COUNTS]
    if not all(_is_count(count) for count in counts) or sum(counts) == 0:
        return None
    return sum(counts)


def output_size(usage: Json) -> int | None:
    """What the model wrote, by the `usage` block; None where it cannot be told."""
    found = usage.get("output_tokens") if isinstance(usage, dict) else None
    return found if _is_count(found) and found else None


def _is_count(value: Json) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 100_000_000
