"""The account of a session under one way to keep it within its window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from efrit_budget.budget.prices import dollars
from efrit_budget.replay.blocks import SentBlock
from efrit_budget.replay.pricing import Till


@dataclass
class Account:
    """What the requests of a session cost, and what stood in them when it was needed."""

    name: str
    till: Till
    facts: int = 0
    facts_in_view: int = 0
    repeats: int = 0
    repeats_in_view: int = 0
    rewrites: int = 0
    extra_dollars: float = 0.0
    """The price of requests besides those of the recording, such as those for a summary."""

    @property
    def dollars(self) -> float:
        """The price of the whole session."""
        return sum(charge.dollars for charge in self.till.charges) + self.extra_dollars

    @property
    def cached_share(self) -> float:
        """The share of all prompt tokens that was read from the cache."""
        charges = self.till.charges
        return sum(one.read for one in charges) / max(1, sum(one.prompt for one in charges))

    @property
    def largest(self) -> int:
        """The tokens of the largest prompt."""
        return max((charge.prompt for charge in self.till.charges), default=0)

    def add_summary(self, prompt: int, output: int) -> None:
        """Add the price of a request that has the model summarize a cached prompt."""
        counts = {"cache_read_input_tokens": prompt, "output_tokens": output}
        self.extra_dollars += dollars(self.till.model.name, counts) or 0.0

    def check(
        self, blocks: Sequence[SentBlock], needed: set[str], repeated: Sequence[SentBlock]
    ) -> None:
        """Count which needed identifiers, and results of repeated calls, a request has."""
        missing = set(needed)
        for block in blocks if needed else ():
            missing -= block.names
        self.facts += len(needed)
        self.facts_in_view += len(needed) - len(missing)
        keys = {block.key for block in blocks} if repeated else set()
        self.repeats += len(repeated)
        self.repeats_in_view += sum(block.key in keys for block in repeated)
