"""Decide when a rewrite pays: compare its price with that of reading without it.

Amounts are in tokens at the price of the input.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from efrit_budget.budget.prices import Rates
from efrit_budget.conversation.pieces import Piece
from efrit_budget.conversation.plan import Plan, cost_in

LEAST_FREED, LEAST_FREED_COLD = 0.1, 0.02
"""The least share of the prompt that is freed by a rewrite that is made to save, with a cache and
without one."""
LEAST_TOKENS = 500
"""The least tokens that are freed by such a rewrite."""


@dataclass(frozen=True)
class Payoff:
    """A rewrite that could be made now."""

    freed: int
    """The tokens that would leave the prompt."""
    rewritten: int
    """The tokens that are in the cache now, and would be written to it anew."""
    prompt: int
    """The tokens of the prompt without the rewrite."""
    rates: Rates

    @property
    def cost(self) -> float:
        """The price of the rewrite, beside that of reading the same tokens from the cache."""
        return self.rewritten * (self.rates.write - self.rates.read)

    @property
    def carrying(self) -> float:
        """The price, in one request without the rewrite, of the tokens that it would free."""
        return max(0, self.freed) * self.rates.read

    def is_due(self, carried: float, patience: float) -> bool:
        """Return whether reading has cost enough since the last rewrite to make this one."""
        return patience > 0 and self.frees_enough and carried >= patience * self.cost

    @property
    def frees_enough(self) -> bool:
        """Return whether the rewrite frees a share of the prompt that is worth a new epoch."""
        return self.freed >= max(LEAST_TOKENS, self.prompt * LEAST_FREED)

    @property
    def is_worth_it_cold(self) -> bool:
        """Return whether the rewrite frees enough when the whole prompt is paid anew anyway."""
        return self.freed >= max(LEAST_TOKENS, self.prompt * LEAST_FREED_COLD)


def payoff(pieces: Iterable[Piece], used: int, plan: Plan, rates: Rates) -> Payoff:
    """Return the payoff of a planned rewrite of a window that has `used` tokens."""
    rewritten, is_changed = 0, False
    for piece in pieces:
        kept = cost_in(piece, plan.states[piece.key])
        is_changed = is_changed or kept != cost_in(piece, piece.state)
        rewritten += kept if is_changed and piece.place is not None else 0
    return Payoff(used - plan.total, rewritten, used, rates)
