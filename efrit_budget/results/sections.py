"""An answer of sections that share one budget, each item as full as there is room for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from efrit_budget.errors import Json
from efrit_budget.results.body import Body, Member, of_items, preceded
from efrit_budget.results.ladder import Item, Packed, outwards, pack, pack_around
from efrit_budget.results.marks import own
from efrit_budget.results.pages import Cost

FURTHER = "## Further out, before and after by turns"
LEAST_STEP = 4
"""Tokens by which the room shrinks at the least when a whole costs more than its parts."""


@dataclass(frozen=True)
class Section:
    """Items under a title, the best first."""

    title: str | None
    items: Sequence[Item]
    facts: Sequence[Json]
    """What programs are told of each item."""
    focus: int | None = None
    """Which of the items the others stand around, where it is not the best that come first.

    Where it is not shown, no other is.
    """


@dataclass(frozen=True)
class Answer:
    """What of the sections stands in a body, and how many items there are in all."""

    body: Body
    shown: int
    total: int


def whole(lead: str, sections: Sequence[Section], noun: str) -> Body:
    """Every item in its fullest form, behind the lines that lead."""
    groups = [
        (_headed(section), [(item.forms[0], fact) for item, fact in _pairs(section)])
        for section in sections
    ]
    return preceded(lead, of_items(noun, groups))


def inside_out(lead: str, section: Section, noun: str, room: int, cost: Cost) -> Body:
    """Every item in its fullest form, the focus first, amid as many neighbours as have room.

    That is the first page; what stands further out follows, the nearest first.
    """
    focus = section.focus or 0
    bare = [Item(item.forms[:1]) for item in section.items]
    near = pack_around(bare, focus, room, cost)
    inner = [line.place for line in near.lines] or [focus]
    outer = [place for place in outwards(focus, len(bare)) if place not in set(inner)]
    first = whole(lead, [_part(section, section.title, inner)], noun)
    body = whole(lead, [_part(section, section.title, inner), _part(section, FURTHER, outer)], noun)
    return replace(body, opening=len(first.text))


def _headed(section: Section) -> str | None:
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
    """What of the sections fits before a tail; None where not even the lines that lead do.

    The sections share the room equally; what one leaves over goes to those that want more.
    """
    room = allowance - cost(f"{lead}{tail}")
    while room >= 0:
        answer = _answer(lead, sections, noun, _packed(sections, room, cost))
        over = cost(f"{answer.body.text}{tail}") - allowance
        if over <= 0:
            return answer
        room = max(0, room - max(LEAST_STEP, over)) if room else -1
    return None


def _pairs(section: Section) -> list[tuple[Item, Json]]:
    return list(zip(section.items, section.facts, strict=True))


def _packed(sections: Sequence[Section], room: int, cost: Cost) -> list[Packed]:
    """What fits of each section; those that want least are served first."""
    wants = [_want(section, cost) for section in sections]
    found: dict[int, Packed] = {}
    order = sorted(range(len(sections)), key=lambda index: (wants[index], index))
    for served, index in enumerate(order):
        share = room // (len(order) - served)
        section = sections[index]
        title = cost(f"{_headed(section)}\n") if section.title else 0
        packed = _served(section, max(0, share - title), cost)
        found[index] = packed
        room -= packed.tokens + (title if packed.lines else 0)
    return [found[index] for index in range(len(sections))]


def _served(section: Section, room: int, cost: Cost) -> Packed:
    """What fits of one section."""
    if section.focus is None:
        return pack(section.items, room, cost)
    return pack_around(section.items, section.focus, room, cost)


def _want(section: Section, cost: Cost) -> int:
    return sum(cost(f"{item.forms[0]}\n") for item in section.items)


def _answer(lead: str, sections: Sequence[Section], noun: str, packed: Sequence[Packed]) -> Answer:
    groups = [
        (_headed(section), _placed(section, part))
        for section, part in zip(sections, packed, strict=True)
    ]
    total = sum(len(section.items) for section in sections)
    body = preceded(lead, of_items(noun, groups))
    return Answer(body, sum(part.shown for part in packed), total)


def _placed(section: Section, part: Packed) -> list[Member]:
    """The lines, and what programs are told of those that show an item."""
    return [
        (line.text, section.facts[line.place]) if line.shows else (line.text,)
        for line in part.lines
    ]
