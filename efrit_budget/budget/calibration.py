"""Calibrate estimated tokens against the usage each model reports."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from efrit_budget.errors import Json

LOWEST, HIGHEST = 0.5, 2.5
SMOOTHING = 0.3
FIRST_SMOOTHING = 0.6
"""The weight of the very first sample: what the table says of a model is only a guess."""
LEAST_ESTIMATE = 400
"""A smaller estimate says nothing about the ratio."""
ABSURD = 6.0
"""A sample this far off either way says nothing of a tokenizer."""
FRAME, MOST_FRAME = 16.0, 60.0
"""What stands around a result in the prompt, until it is learnt, and at the most."""
FRAME_SMOOTHING = 0.1
PLAIN_RESULT = 300
"""Estimated tokens of a result, above which it says more of the factor than of the frame."""


@dataclass(frozen=True)
class Calibration:
    """A model's correction factor, its number of samples and its recent error."""

    factor: float
    samples: int = 0
    error: float = 0.0
    frame: float = FRAME
    """What each `tool_result` costs beside its text: its name, its id, what is around them."""

    def tokens(self, raw: float, results: int = 0) -> int:
        """An estimate in this model's tokens, of so many results."""
        return math.ceil(raw * self.factor + results * self.frame)

    def after(self, raw: int, exact: int, true_prompt: int, results: int = 0) -> Calibration:
        """Return the calibration updated with one counted prompt.

        A sample that says nothing of the tokenizer leaves everything as it is.
        """
        share = true_prompt - exact - results * self.frame
        if raw < LEAST_ESTIMATE or not raw / ABSURD < share < raw * ABSURD:
            return self
        weight = SMOOTHING if self.samples else FIRST_SMOOTHING
        moved = self.factor + weight * (share / raw - self.factor)
        missed = abs(self.tokens(raw, results) + exact - true_prompt) / true_prompt
        error = missed if not self.samples else self.error + weight * (missed - self.error)
        factor = min(HIGHEST, max(LOWEST, moved))
        return replace(self, factor=factor, samples=self.samples + 1, error=error)

    def after_results(self, raw: int, tokens: int, results: int) -> Calibration:
        """Return the frame learnt once `results` of `raw` estimated tokens were counted.

        Results cost less than nothing only where something else left the prompt.
        """
        if results == 0 or tokens < 0:
            return self
        plain = results * PLAIN_RESULT
        weight = FRAME_SMOOTHING * plain / (plain + raw)
        found = min(MOST_FRAME, max(0.0, (tokens - raw * self.factor) / results))
        return replace(self, frame=self.frame + weight * (found - self.frame))

    def as_dict(self) -> dict[str, Json]:
        """Return the calibration as the wire carries it."""
        return {
            "factor": round(self.factor, 4),
            "samples": self.samples,
            "recent_error": round(self.error, 4),
            "frame": round(self.frame, 1),
        }


PROMPT_COUNTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


def counts_of(usage: Json) -> dict[str, int]:
    """Return the plausible counts of a `usage` block."""
    if not isinstance(usage, dict):
        return {}
    names = (*PROMPT_COUNTS, "output_tokens")
    return {name: usage[name] for name in names if _is_count(usage.get(name))}


def true_prompt_size(usage: Json) -> int | None:
    """Return the prompt size that a `usage` block reports, or None."""
    if not isinstance(usage, dict):
        return None
    counts = [usage.get(name) or 0 for name in PROMPT_COUNTS]
    if not all(_is_count(count) for count in counts) or sum(counts) == 0:
        return None
    return sum(counts)


def output_size(usage: Json) -> int | None:
    """Return the output tokens that a `usage` block reports, or None."""
    found = usage.get("output_tokens") if isinstance(usage, dict) else None
    return found if _is_count(found) and found else None


def _is_count(value: Json) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 100_000_000
