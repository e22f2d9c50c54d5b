"""Pack items into a budget, shortening each before leaving it out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

Cost = Callable[[str], int]


@dataclass(frozen=True)
class Item:
    """One item with its renderings, longest first."""

    forms: tuple[str, ...]
    names: tuple[str, ...] = ()
    """What it is called where there is room for none of them; its size goes with it."""


@dataclass(frozen=True)
class Line:
    """The rendering of an item that fitted."""

    place: int
    """Which of the items it is."""
    text: str
    tokens: int
    shows: bool
    """False where the item is only named: it counts as left out."""


@dataclass(frozen=True)
class Packed:
    """The lines that fitted, in item order."""

    lines: tuple[Line, ...]
    total: int

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts of the lines."""
        return tuple(line.text for line in self.lines)

    @property
    def tokens(self) -> int:
        """The cost of the lines, counted one by one."""
        return sum(line.tokens for line in self.lines)

    @property
    def shown(self) -> int:
        """The number of items shown."""
        return sum(line.shows for line in self.lines)

    @property
    def omitted(self) -> int:
        """The number of items left out or only named."""
        return self.total - self.shown


def pack(items: Iterable[Item], allowance: int, cost: Cost) -> Packed:
    """Pack each item in the longest form that fits, in order.

    What fits in no form is named with its size from what is left after all were tried.
    """
    packing = _Packing(list(items), allowance, cost)
    for place in [place for place in range(packing.total) if not packing.shows(place)]:
        packing.names(place)
    return packing.packed


def pack_around(items: Sequence[Item], focus: int, allowance: int, cost: Cost) -> Packed:
    """Pack the focus and its neighbours, alternating between both sides.

    A side ends at the first that has no room, so that nothing between is missing; the other may
    have one more, or all that there is room for where a side has no more items.
    """
    packing = _Packing(items, allowance, cost)
    if not packing.shows(focus):
        packing.names(focus)
        return packing.packed
    sides = (range(focus - 1, -1, -1), range(focus + 1, len(items)))
    reached = _extend_sides(sides, (0, 0), packing.shows)
    _extend_sides(sides, reached, packing.names)
    return packing.packed


def outwards(focus: int, count: int) -> Iterator[int]:
    """Yield places from the focus outwards, alternating sides."""
    turns = zip_longest(range(focus - 1, -1, -1), range(focus + 1, count))
    return chain([focus], (place for place in chain.from_iterable(turns) if place is not None))


class _Packing:
    """Lines that use up an allowance."""

    def __init__(self, items: Sequence[Item], allowance: int, cost: Cost) -> None:
        self._items = items
        self._left = allowance
        self._cost = cost
        self._lines: list[Line] = []

    @property
    def total(self) -> int:
        """The number of items."""
        return len(self._items)

    def shows(self, place: int) -> bool:
        """Show an item in the fullest form that fits."""
        return self._takes(place, self._items[place].forms, shows=True)

    def names(self, place: int) -> bool:
        """Name an item, and tell what it would cost."""
        item = self._items[place]
        size = f"({self._cost(item.forms[0]):,} tokens)" if item.names else ""
        return self._takes(place, [f"{name} {size}" for name in item.names], shows=False)

    def _takes(self, place: int, forms: Iterable[str], *, shows: bool) -> bool:
        for form in forms:
            tokens = self._cost(form + "\n")
            if tokens <= self._left:
                self._left -= tokens
                self._lines.append(Line(place, form, tokens, shows))
                return True
        return False

    @property
    def packed(self) -> Packed:
        """The lines packed so far."""
        lines = sorted(self._lines, key=lambda line: line.place)
        return Packed(tuple(lines), self.total)


Reached = tuple[int, int]


def _extend_sides(
    sides: tuple[Sequence[int], Sequence[int]], begun: Reached, fits: Callable[[int], bool]
) -> Reached:
    """Extend both sides while items fit; return how far each got."""
    reached, stopped = list(begun), [False, False]
    while True:
        growing = [
            side
            for side in (0, 1)
            if not stopped[side]
            and reached[side] < len(sides[side])
            and (reached[side] <= reached[1 - side] or reached[1 - side] == len(sides[1 - side]))
        ]
        if not growing:
            return reached[0], reached[1]
        side = min(growing, key=reached.__getitem__)
        if fits(sides[side][reached[side]]):
            reached[side] += 1
        else:
            stopped[side] = True
