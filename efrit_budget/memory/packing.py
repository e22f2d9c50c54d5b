"""Pack observations into a budget, best first, priced as one text."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from efrit_budget.budget.plain import Cost, utf8_bytes
from efrit_budget.memory.observation import Observation
from efrit_budget.results.footer import state_own_cost


class Named(NamedTuple):
    """An observation that does not fit, with its cost."""

    memory: Observation
    tokens: int


@dataclass(frozen=True)
class Pack:
    """Observations that are packed, and those that are named as they do not fit."""

    total: int
    """The number of observations that match the same words and filters."""
    budget: int | None = None
    project: str | None = None
    any_word: bool = False
    """Whether the observations match only some of the words, as none matches all."""
    memories: tuple[Observation, ...] = ()
    named: tuple[Named, ...] = ()
    counted: bool = True
    """Whether the text says how many observations are left out."""

    @property
    def left_out(self) -> int:
        """The number of observations that are not packed, including those never tried."""
        return self.total - len(self.memories)


class Form(Protocol):
    """A way to write a pack as text."""

    may_end_in_blank_lines: bool

    def text(self, pack: Pack, tokens: int) -> str:
        """Return the whole text, in which `tokens` is stated as its cost."""

    def entry(self, memory: Observation) -> str:
        """Return the text of one observation."""


class PackText(NamedTuple):
    """A pack as text, with its cost."""

    pack: Pack
    text: str
    tokens: int


def pack(empty: Pack, candidates: Sequence[Observation], form: Form, cost: Cost) -> PackText:
    """Pack the candidates that fit, in order, and name the others as far as there is room.

    If not even one fits beside the line that says how many are left out, that line is omitted. A
    pack without observations is written whatever it costs.
    """
    counted = _pack(empty, candidates, form, cost)
    if counted.pack.memories:
        return counted
    uncounted = _pack(replace(empty, counted=False), candidates, form, cost)
    return uncounted if uncounted.pack.memories else counted


def _pack(start: Pack, candidates: Sequence[Observation], form: Form, cost: Cost) -> PackText:
    packer = _Packer(start, form, cost)
    rest = [candidate for candidate in candidates if not packer.add(candidate)]
    for candidate in rest if start.counted else ():
        packer.name(candidate)
    return packer.write()


class _Packer:
    """Adds observations to a pack while they fit."""

    def __init__(self, start: Pack, form: Form, cost: Cost) -> None:
        self._form = form
        self._cost = cost
        self._pack = start
        self._bytes = 0

    def add(self, memory: Observation) -> bool:
        """Add an observation; return false if it does not fit."""
        size = self._bytes + utf8_bytes(self._form.entry(memory))
        larger = replace(self._pack, memories=(*self._pack.memories, memory))
        if self._exceeds_budget(size) or not self._take(larger):
            return False
        self._bytes = size
        return True

    def name(self, memory: Observation) -> None:
        """Name an observation with its cost, if that fits."""
        if not self._exceeds_budget(self._bytes + utf8_bytes(memory.title)):
            named = Named(memory, self._cost(self._form.entry(memory)))
            self._take(replace(self._pack, named=(*self._pack.named, named)))

    def _exceeds_budget(self, size: int) -> bool:
        """Return whether a quarter of the bytes exceeds the budget, so that the text cannot fit."""
        budget = self._pack.budget
        return budget is not None and size // 4 > budget

    def _take(self, larger: Pack) -> bool:
        """Replace the pack by a larger one if its text fits; return false if it does not."""
        budget = larger.budget
        if budget is not None and self._cost(self._form.text(larger, budget)) > budget:
            return False
        self._pack = larger
        return True

    def write(self) -> PackText:
        """Return the pack as text that states its cost, without observations that no longer fit."""
        pack = self._pack
        while True:
            text, tokens = self._with_cost(pack)
            is_empty = not (pack.memories or pack.named)
            if pack.budget is None or tokens <= pack.budget or is_empty:
                return PackText(pack, text, tokens)
            if pack.named:
                pack = replace(pack, named=pack.named[:-1])
            else:
                pack = replace(pack, memories=pack.memories[:-1])

    def _with_cost(self, pack: Pack) -> tuple[str, int]:
        """Return the text, which states its own cost, and that cost."""
        form = self._form
        return state_own_cost(
            lambda tokens, blank: form.text(pack, tokens) + blank,
            self._cost,
            pack.budget or 0,
            may_fill=form.may_end_in_blank_lines,
        )
