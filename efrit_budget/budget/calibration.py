"""Calibrate estimated tokens against the usage each model reports."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from efrit_budget.errors import Json

LOWEST, HIGHEST = 0.5, 2.5
SMOOTHING = 0.3
FIRST_SMOOTHING = 0.6
"""The weight of the first sample, as the factor in the table of models is only a guess."""
LEAST_ESTIMATE = 400
"""The least estimate of a prompt that counts as a sample."""
ABSURD = 6.0
"""The ratio of a count to its estimate, or the reverse, above which the count is not believed."""
FRAME, MOST_FRAME = 16.0, 60.0
"""The tokens around a result in the prompt: those assumed at first, and the most believed."""
FRAME_SMOOTHING = 0.1
PLAIN_RESULT = 300
"""The estimated tokens of a result above which it tells more of the factor than of the frame."""


@dataclass(frozen=True)
class Calibration:
    """A model's correction factor, its number of samples and its recent error."""

    factor: float
    samples: int = 0
    error: float = 0.0
    frame: float = FRAME
    """The tokens of each `tool_result` besides those of its text: its id and what is around it."""

    def tokens(self, raw: float, results: int = 0) -> int:
        """Return the estimate `raw` in this model's tokens, with the frames of its results."""
        return math.ceil(raw * self.factor + results * self.frame)

    def after(self, raw: int, exact: int, true_prompt: int, results: int = 0) -> Calibration:
        """Return the calibration updated with a prompt of `true_prompt` tokens by the API's count.

        A prompt that is too small, or whose count is not plausible, changes nothing.
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
        """Return the calibration with its frame updated by results that cost `tokens` in all.

        Negative tokens change nothing, as then something else has left the prompt.
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
    """Return the plausible token counts of a `usage` block by their names."""
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
