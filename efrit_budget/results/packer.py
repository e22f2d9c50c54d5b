"""Pack items into an allowance, shortening each before leaving it out; share it by sections."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from operator import attrgetter

from efrit_budget.errors import Json
from efrit_budget.results.body import Body, Member, of_items, preceded
from efrit_budget.results.marks import own
from efrit_budget.results.pages import Cost

FURTHER = "## Further out, before and after by turns"
LEAST_STEP = 4
"""Tokens by which the room shrinks at the least when a whole costs more than its parts."""


@dataclass(frozen=True)
class Item:
    """One item with its texts in several lengths, longest first."""

    forms: tuple[str, ...]
    names: tuple[str, ...] = ()
    """Names of the item, of which one stands with the item's cost if none of its texts fits."""


@dataclass(frozen=True)
class Line:
    """A text or a name of an item that fitted."""

    place: int
    """The index of the item."""
    text: str
    tokens: int
    shows: bool
    """False if the item is only named, which counts as left out."""


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


def pack(items: Sequence[Item], allowance: int, cost: Cost, focus: int | None = None) -> Packed:
    """Pack each item in the longest form that fits, in order; then name others if names fit.

    `focus` is the index of an item that is packed first; its neighbours follow, alternating sides.
    A side stops at the first item that does not fit, and the other side then gets at most one item
    more; if a side has no more items, the other goes on as long as items fit.
    """
    packing = _Packing(items, allowance, cost)
    if focus is None:
        for place in [place for place in range(len(items)) if not packing.shows(place)]:
            packing.names(place)
    elif packing.shows(focus):
        sides = (range(focus - 1, -1, -1), range(focus + 1, len(items)))
        reached = _extend_sides(sides, (0, 0), packing.shows)
        _extend_sides(sides, reached, packing.names)
    else:
        packing.names(focus)
    return Packed(tuple(sorted(packing.lines, key=attrgetter("place"))), len(items))


def outwards(focus: int, count: int) -> Iterator[int]:
    """Yield the indexes of `count` items from the focus outwards, alternating sides."""
    turns = zip_longest(range(focus - 1, -1, -1), range(focus + 1, count))
    return chain([focus], (place for place in chain.from_iterable(turns) if place is not None))


class _Packing:
    """The lines packed so far, and what they leave of an allowance."""

    def __init__(self, items: Sequence[Item], allowance: int, cost: Cost) -> None:
        self._items = items
        self._left = allowance
        self._cost = cost
        self.lines: list[Line] = []

    def shows(self, place: int) -> bool:
        """Add an item in the longest form that fits; return false if none fits."""
        return self._takes(place, self._items[place].forms, shows=True)

    def names(self, place: int) -> bool:
        """Add the longest name of an item that fits, with the item's cost; return false if none."""
        item = self._items[place]
        size = f"({self._cost(item.forms[0]):,} tokens)" if item.names else ""
        return self._takes(place, [f"{name} {size}" for name in item.names], shows=False)

    def _takes(self, place: int, forms: Iterable[str], *, shows: bool) -> bool:
        for form in forms:
            tokens = self._cost(form + "\n")
            if tokens <= self._left:
                self._left -= tokens
                self.lines.append(Line(place, form, tokens, shows))
                return True
        return False


Reached = tuple[int, int]


def _extend_sides(
    sides: tuple[Sequence[int], Sequence[int]], begun: Reached, fits: Callable[[int], bool]
) -> Reached:
    """Extend both sides while items fit; return the number of items that each side has."""
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


# Sections


@dataclass(frozen=True)
class Section:
    """Items under a title, best first."""

    title: str | None
    items: Sequence[Item]
    facts: Sequence[Json]
    """The data of each item for programs."""
    focus: int | None = None
    """The index of the central item, without which no other shows; None if the best come first."""


@dataclass(frozen=True)
class Answer:
    """The items that fit, as a body; their number, and the number of all items."""

    body: Body
    shown: int
    total: int


def whole(lead: str, sections: Sequence[Section], noun: str) -> Body:
    """Return a body of every item in its longest form, with the text `lead` before them."""
    groups = [
        (
            _header(section),
            [
                (item.forms[0], fact)
                for item, fact in zip(section.items, section.facts, strict=True)
            ],
        )
        for section in sections
    ]
    return preceded(lead, of_items(noun, groups))


def inside_out(lead: str, section: Section, noun: str, room: int, cost: Cost) -> Body:
    """Return a body of all items, whose first page has the focus and neighbours that fit `room`.

    The items further out follow, the nearest to the focus first.
    """
    focus = section.focus or 0
    bare = [Item(item.forms[:1]) for item in section.items]
    near = pack(bare, room, cost, focus)
    inner = [line.place for line in near.lines] or [focus]
    outer = [place for place in outwards(focus, len(bare)) if place not in set(inner)]
    first = whole(lead, [_part(section, section.title, inner)], noun)
    body = whole(lead, [_part(section, section.title, inner), _part(section, FURTHER, outer)], noun)
    return replace(body, opening=len(first.text))


def _header(section: Section) -> str | None:
    return section.title and own(section.title)


def _part(section: Section, title: str | None, places: Sequence[int]) -> Section:
    return Section(
        title,
        [section.items[place] for place in places],
        [section.facts[place] for place in places],
    )


def within(
    lead: str,
    sections: Sequence[Section],
    noun: str,
    allowance: int,
    cost: Cost,
    tail: str = "",
) -> Answer | None:
    """Return the items that fit between the texts `lead` and `tail`; None if these do not fit.

    The sections share the room equally; a section that needs less leaves the rest to the others.
    """
    room = allowance - cost(f"{lead}{tail}")
    while room >= 0:
        answer = _answer(lead, sections, noun, _pack_sections(sections, room, cost))
        over = cost(f"{answer.body.text}{tail}") - allowance
        if over <= 0:
            return answer
        room = max(0, room - max(LEAST_STEP, over)) if room else -1
    return None


def _pack_sections(sections: Sequence[Section], room: int, cost: Cost) -> list[Packed]:
    """Return the packed items of each section, packing the sections that need least first."""
    wants = [sum(cost(f"{item.forms[0]}\n") for item in one.items) for one in sections]
    found: dict[int, Packed] = {}
    order = sorted(range(len(sections)), key=lambda index: (wants[index], index))
    for position, index in enumerate(order):
        share = room // (len(order) - position)
        section = sections[index]
        title = cost(f"{_header(section)}\n") if section.title else 0
        packed = pack(section.items, max(0, share - title), cost, section.focus)
        found[index] = packed
        room -= packed.tokens + (title if packed.lines else 0)
    return [found[index] for index in range(len(sections))]


def _answer(lead: str, sections: Sequence[Section], noun: str, packed: Sequence[Packed]) -> Answer:
    """Return the packed sections as one body; only items that are shown, not named, have data."""
    groups: list[tuple[str | None, list[Member]]] = []
    for section, part in zip(sections, packed, strict=True):
        members: list[Member] = [
            (line.text, section.facts[line.place]) if line.shows else (line.text,)
            for line in part.lines
        ]
        groups.append((_header(section), members))
    total = sum(len(section.items) for section in sections)
    body = preceded(lead, of_items(noun, groups))
    return Answer(body, sum(part.shown for part in packed), total)
