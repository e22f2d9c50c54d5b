"""Answers in sections that share one budget."""

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
    """Items under a title, best first."""

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
    """The sections that fit, and the number of all items."""

    body: Body
    shown: int
    total: int


def whole(lead: str, sections: Sequence[Section], noun: str) -> Body:
    """Return every item in its longest form behind the lead lines."""
    groups = [
        (_header(section), [(item.forms[0], fact) for item, fact in _pairs(section)])
        for section in sections
    ]
    return preceded(lead, of_items(noun, groups))


def inside_out(lead: str, section: Section, noun: str, room: int, cost: Cost) -> Body:
    """Return every item, the focus first and its neighbours on the first page.

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
    """Return the sections that fit before a tail, or None if the lead does not fit.

    The sections share the room equally; what one leaves over goes to those that want more.
    """
    room = allowance - cost(f"{lead}{tail}")
    while room >= 0:
        answer = _answer(lead, sections, noun, _pack_sections(sections, room, cost))
        over = cost(f"{answer.body.text}{tail}") - allowance
        if over <= 0:
            return answer
        room = max(0, room - max(LEAST_STEP, over)) if room else -1
    return None


def _pairs(section: Section) -> list[tuple[Item, Json]]:
    return list(zip(section.items, section.facts, strict=True))


def _pack_sections(sections: Sequence[Section], room: int, cost: Cost) -> list[Packed]:
    """Return what fits of each section, the smallest demands first."""
    wants = [_full_cost(section, cost) for section in sections]
    found: dict[int, Packed] = {}
    order = sorted(range(len(sections)), key=lambda index: (wants[index], index))
    for position, index in enumerate(order):
        share = room // (len(order) - position)
        section = sections[index]
        title = cost(f"{_header(section)}\n") if section.title else 0
        packed = _pack_section(section, max(0, share - title), cost)
        found[index] = packed
        room -= packed.tokens + (title if packed.lines else 0)
    return [found[index] for index in range(len(sections))]


def _pack_section(section: Section, room: int, cost: Cost) -> Packed:
    """Return what fits of one section."""
    if section.focus is None:
        return pack(section.items, room, cost)
    return pack_around(section.items, section.focus, room, cost)


def _full_cost(section: Section, cost: Cost) -> int:
    return sum(cost(f"{item.forms[0]}\n") for item in section.items)


def _answer(lead: str, sections: Sequence[Section], noun: str, packed: Sequence[Packed]) -> Answer:
    groups = [
        (_header(section), _members(section, part))
        for section, part in zip(sections, packed, strict=True)
    ]
    total = sum(len(section.items) for section in sections)
    body = preceded(lead, of_items(noun, groups))
    return Answer(body, sum(part.shown for part in packed), total)


def _members(section: Section, part: Packed) -> list[Member]:
    """Return the lines with the data of those that show an item."""
    return [
        (line.text, section.facts[line.place]) if line.shows else (line.text,)
        for line in part.lines
    ]
