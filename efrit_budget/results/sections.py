"""An answer of sections that share one budget, each item as full as there is room for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from efrit_budget.errors import Json
from efrit_budget.results.body import Body, of_items, preceded
from efrit_budget.results.ladder import Item, Packed, pack
from efrit_budget.results.pages import Cost

LEAST_STEP = 4
"""Tokens by which the room shrinks at the least when a whole costs more than its parts."""


@dataclass(frozen=True)
class Section:
    """Items under a title, the best first."""

    title: str | None
    items: Sequence[Item]
    facts: Sequence[Json]
    """What programs are told of each item."""
    order: Sequence[int] | None = None
    """In which order there is room for the items, where it is not the one they are shown in.

    Without the first of it, nothing is shown.
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
        (section.title, [(item.forms[0], fact) for item, fact in _pairs(section)])
        for section in sections
    ]
    return preceded(lead, of_items(noun, groups))


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
        title = cost(f"{section.title}\n") if section.title else 0
        packed = _served(section, max(0, share - title), cost)
        found[index] = packed
        room -= packed.tokens + (title if packed.shown else 0)
    return [found[index] for index in range(len(sections))]


def _served(section: Section, room: int, cost: Cost) -> Packed:
    """What fits of one section, as it is shown."""
    if section.order is None:
        return pack(section.items, room, cost)
    found = pack([section.items[place] for place in section.order], room, cost)
    if 0 not in found.places:
        return Packed((), 0, len(section.items), ())
    shown = sorted(
        (section.order[place], line) for place, line in zip(found.places, found.lines, strict=True)
    )
    lines, places = tuple(line for _, line in shown), tuple(place for place, _ in shown)
    return replace(found, lines=lines, places=places)


def _want(section: Section, cost: Cost) -> int:
    return sum(cost(f"{item.forms[0]}\n") for item in section.items)


def _answer(lead: str, sections: Sequence[Section], noun: str, packed: Sequence[Packed]) -> Answer:
    groups = [
        (section.title, _placed(section, part))
        for section, part in zip(sections, packed, strict=True)
    ]
    total = sum(len(section.items) for section in sections)
    body = preceded(lead, of_items(noun, groups))
    return Answer(body, sum(part.shown for part in packed), total)


def _placed(section: Section, part: Packed) -> list[tuple[str, Json]]:
    return [
        (line, section.facts[place]) for line, place in zip(part.lines, part.places, strict=True)
    ]
