"""Pack observations into a budget, best first, priced as one text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from efrit_budget.budget.plain import Cost, utf8_bytes
from efrit_budget.memory.observation import Observation

FIGURE_TRIES = 5


@dataclass(frozen=True)
class Named:
    """An observation that does not fit, with its cost."""

    memory: Observation
    tokens: int


@dataclass(frozen=True)
class Pack:
    """The observations that are packed, and those left out."""

    total: int
    """How many there are under the same words and filters."""
    budget: int | None = None
    project: str | None = None
    any_word: bool = False
    """Whether none holds every word that was asked for."""
    memories: tuple[Observation, ...] = ()
    named: tuple[Named, ...] = ()
    counted: bool = True
    """Whether the text says how many are left out."""

    @property
    def left_out(self) -> int:
        """Return how many observations are left out, including those never tried."""
        return self.total - len(self.memories)


class Form(Protocol):
    """A way to write a pack."""

    def text(self, pack: Pack, tokens: int) -> str:
        """Return the whole text, including its stated cost."""

    def entry(self, memory: Observation) -> str:
        """Return the text of one observation."""


@dataclass(frozen=True)
class Written:
    """A pack as text, with its cost."""

    pack: Pack
    text: str
    tokens: int


def packed(empty: Pack, candidates: Sequence[Observation], form: Form, cost: Cost) -> Written:
    """Pack as many candidates as fit and skip those that do not.

    What was passed over is named in the end, as far as there is room. Where not even one fits
    beside the line that counts those left out, that line goes. An empty pack is written whatever
    it costs.
    """
    written = _pack(empty, candidates, form, cost)
    if written.pack.memories:
        return written
    uncounted = _pack(replace(empty, counted=False), candidates, form, cost)
    return uncounted if uncounted.pack.memories else written


def _pack(empty: Pack, candidates: Sequence[Observation], form: Form, cost: Cost) -> Written:
    packer = _Packer(empty, form, cost)
    passed_over = [one for one in candidates if not packer.takes(one)]
    if empty.counted:
        for one in passed_over:
            packer.names(one)
    return packer.written()


class _Packer:
    """Adds observations to a pack while they fit."""

    def __init__(self, empty: Pack, form: Form, cost: Cost) -> None:
        self._form = form
        self._cost = cost
        self._pack = empty
        self._bytes = 0

    def takes(self, memory: Observation) -> bool:
        """Take a memory if it fits."""
        entry = utf8_bytes(self._form.entry(memory))
        larger = replace(self._pack, memories=(*self._pack.memories, memory))
        if self._is_hopeless(self._bytes + entry) or not self._fits(larger):
            return False
        self._bytes += entry
        return True

    def names(self, memory: Observation) -> bool:
        """Name a memory with its size, if that still fits."""
        if self._is_hopeless(self._bytes + utf8_bytes(memory.title)):
            return False
        alone = Named(memory, self._cost(self._form.entry(memory)))
        return self._fits(replace(self._pack, named=(*self._pack.named, alone)))

    def written(self) -> Written:
        """Return the pack as text, with its cost stated in the text."""
        pack = self._pack
        while True:
            text, tokens = self._agreeing(pack)
            if pack.budget is None or tokens <= pack.budget or pack == _empty(pack):
                return Written(pack, text, tokens)
            pack = _drop_last(pack)

    def _is_hopeless(self, size: int) -> bool:
        """Return whether a quarter of the bytes already exceeds the budget."""
        budget = self._pack.budget
        return budget is not None and size // 4 > budget

    def _fits(self, larger: Pack) -> bool:
        fits = self._is_within(larger)
        if fits:
            self._pack = larger
        return fits

    def _is_within(self, pack: Pack) -> bool:
        if pack.budget is None:
            return True
        return self._cost(self._form.text(pack, pack.budget)) <= pack.budget

    def _agreeing(self, pack: Pack) -> tuple[str, int]:
        """Return the text whose stated cost is its own cost, or nearly."""
        tokens = pack.budget or 0
        for _ in range(FIGURE_TRIES):
            text = self._form.text(pack, tokens)
            counted = self._cost(text)
            if counted == tokens:
                break
            tokens = counted
        return text, counted


def _empty(pack: Pack) -> Pack:
    return replace(pack, memories=(), named=())


def _drop_last(pack: Pack) -> Pack:
    """Return the pack without the item added last."""
    if pack.named:
        return replace(pack, named=pack.named[:-1])
    return replace(pack, memories=pack.memories[:-1])
