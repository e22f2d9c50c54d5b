"""Make room in hindsight: knowing what is taken up again, and when a rewrite pays.

A rewrite clears old results, inputs and thinking, but for those of the latest exchanges. Results
stay that a later call repeats, and the names that later replies take up from results stand in an
index. The oldest exchanges leave when the history is above its tier. The turns to rewrite at are
those that cost least together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from math import inf

from efrit_budget.budget.prices import CACHE_SECONDS, Rates
from efrit_budget.replay.blocks import Measure
from efrit_budget.replay.references import Entry, Past, Reference

RECENT = 3
"""The most exchanges before the message that is sent that stay as they are."""
NOT_CACHED = Rates(read=1.0, write=1.0)
"""The rates where a model's prices are unknown."""


@dataclass
class Clairvoyant(Reference):
    """Rewrites at given turns, by what is needed later."""

    history: int
    """The most tokens of everything but results after a rewrite."""
    recent: int
    """The most tokens of results of the latest exchanges."""
    repeated: Sequence[Set[str]]
    """The keys of the results that the calls of each turn repeat."""
    needed: Sequence[Set[str]]
    """The names that each turn takes up from results."""
    measure: Measure
    rewrites: frozenset[int] = frozenset()
    name: str = "clairvoyant"
    _turn: int = -1

    def make_room(self, past: Past) -> bool:
        """Rewrite the window if this is one of the turns for it."""
        self._turn += 1
        if self._turn not in self.rewrites:
            return False
        self.rewrite(past, self._turn)
        return True

    def rewrite(self, past: Past, turn: int) -> None:
        """Clear and drop what no reply from this turn on needs."""
        kept = frozenset[str]().union(*self.repeated[turn:])
        names = frozenset[str]().union(*self.needed[turn:])
        known = frozenset[str]().union(*(entry.block.names for entry in past.entries()))
        old = self._old(past)
        for exchange in old:
            exchange[:] = [entry for entry in exchange if not entry.is_thinking]
            for entry in exchange:
                if entry.block.key not in kept:
                    entry.clear()
        self._drop_history(old, kept)
        visible = frozenset[str]().union(*(entry.block.names for entry in past.entries()))
        index = self.measure.text(" ".join(sorted((names & known) - visible)))
        past.exchanges[0] = [Entry(index), *past.exchanges[0]]

    def _old(self, past: Past) -> Sequence[list[Entry]]:
        """Return all exchanges but the message that is sent and the latest before it."""
        room, kept = self.recent, 1
        for exchange in reversed(past.exchanges[-RECENT - 1 : -1]):
            room -= sum(entry.block.tokens for entry in exchange if entry.is_result)
            if room < 0 and kept > 1:
                break
            kept += 1
        return past.exchanges[:-kept]

    def _drop_history(self, old: Sequence[list[Entry]], kept: Set[str]) -> None:
        entries = [entry for exchange in old for entry in exchange if entry.block.key not in kept]
        total = sum(entry.block.tokens for entry in entries)
        for exchange in old:
            if total <= self.history:
                break
            if not any(entry.block.key in kept for entry in exchange):
                total -= sum(entry.block.tokens for entry in exchange)
                exchange.clear()


def cheapest_rewrites(
    began: Sequence[float], grown: Sequence[int], rewritten: Sequence[int], limit: int, rates: Rates
) -> frozenset[int]:
    """Return the numbers of the turns to rewrite at, so that all prompts together cost least.

    `grown` are the tokens of each prompt without management, `rewritten` those of each prompt if
    it were rewritten. What the prompts before a rewrite share with it counts as paid anew.
    """
    best: list[tuple[float, int]] = [(inf, 0)] * (len(grown) + 1)
    best[0] = (0.0, 0)
    for start in range(len(grown)):
        spent, before = best[start][0], 0
        for turn in range(start, len(grown)):
            base = grown[0] if start == 0 else rewritten[start]
            prompt = base + grown[turn] - grown[start]
            if prompt > limit and turn > start:
                break
            is_cached = turn > start and began[turn] - began[turn - 1] <= CACHE_SECONDS
            read = before if is_cached else 0
            spent += read * rates.read + (prompt - read) * rates.write
            before = prompt
            best[turn + 1] = min(best[turn + 1], (spent, start))
    return frozenset(_starts(best))


def _starts(best: Sequence[tuple[float, int]]) -> Iterable[int]:
    end = len(best) - 1
    while end > 0:
        end = best[end][1]
        if end > 0:
            yield end
