"""Charge requests as the API does: what one shares with the one before is read from the cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from efrit_budget.budget.models import Model
from efrit_budget.budget.prices import CACHE_SECONDS, dollars
from efrit_budget.replay.blocks import SentBlock


@dataclass(frozen=True)
class Charge:
    """The price of one request and its reply."""

    prompt: int
    read: int
    output: int
    dollars: float


@dataclass
class Till:
    """Charges the requests of a session, one after the other."""

    model: Model
    _before: Sequence[SentBlock] = ()
    _moment: float = 0.0
    charges: list[Charge] = field(default_factory=list)

    def charge(self, blocks: Sequence[SentBlock], output: int, moment: float) -> Charge:
        """Charge a request that is sent at a moment, and its reply of so many tokens."""
        prompt = sum(block.tokens for block in blocks)
        shared = 0
        if moment - self._moment <= CACHE_SECONDS:
            for block, before in zip(blocks, self._before, strict=False):
                if block.key != before.key:
                    break
                shared += block.tokens
        is_cached = prompt >= self.model.least_cacheable
        read = shared if shared >= self.model.least_cacheable else 0
        new = prompt - read
        counts = {"output_tokens": output, "cache_read_input_tokens": read}
        counts["cache_creation_input_tokens" if is_cached else "input_tokens"] = new
        price = dollars(self.model.name, counts) or 0.0
        self._before, self._moment = (list(blocks) if is_cached else []), moment
        charge = Charge(prompt, read, output, price)
        self.charges.append(charge)
        return charge
