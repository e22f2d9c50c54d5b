"""What was saved before and after an observation."""

from __future__ import annotations

from typing import ClassVar

from efrit_budget.memory.observation import Observation, Timeline
from efrit_budget.results.ladder import Item
from efrit_budget.results.sections import Section
from efrit_budget.tools.base import Arguments, Hint, Outcome, Policy, ToolContext, failure
from efrit_budget.tools.fitted import Found, fitted
from efrit_budget.tools.remembered import (
    Beside,
    Id,
    Limit,
    ReadArguments,
    fact_of,
    item_of,
    line_of,
)

FOCUS = "> "


class MemTimelineArguments(ReadArguments):
    """The arguments of `mem_timeline`."""

    id: Id
    before: Beside = 5
    after: Beside = 5
    limit: Limit | None = None


class MemTimeline:
    """An observation in the middle of its session."""

    name: ClassVar[str] = "mem_timeline"
    description: ClassVar[str] = "Observations before and after one, in its session."
    arguments: ClassVar[type[Arguments]] = MemTimelineArguments
    policy: ClassVar[Policy] = Policy.ALLOW
    has_effects: ClassVar[bool] = False
    hint: ClassVar[Hint | None] = None

    def run(self, arguments: MemTimelineArguments, context: ToolContext) -> Outcome:
        """Show it; what has no room goes from both ends."""
        timeline = context.memory.timeline(
            arguments.id, arguments.before, arguments.after, arguments.filters()
        )
        if timeline is None:
            return failure(f"there is no observation #{arguments.id}; mem_search finds some")
        shown, order = _nearest(timeline, arguments.limit)
        section = Section(
            None,
            [_item(one, timeline.focus, arguments, context) for one in shown],
            [{**fact_of(one), "focus": one is timeline.focus} for one in shown],
            order,
        )
        found = Found("", [section], "observations", timeline.total, "", "observations in session")
        return fitted(found, arguments.max_tokens, context)

    def compress(self, arguments: MemTimelineArguments, outcome: Outcome) -> str:
        """Which observations stand around which."""
        names = "; ".join(f"#{one['id']} {one['title']}" for one in outcome.whole.item_data)
        return f"Read the timeline around #{arguments.id}: {names}"[:500]


def _nearest(timeline: Timeline, limit: int | None) -> tuple[list[Observation], list[int]]:
    """What is shown in the order of time, and the places in it from the focus outwards."""
    before, after = timeline.before[::-1], timeline.after
    outwards = [timeline.focus]
    for step in range(max(len(before), len(after))):
        outwards += before[step : step + 1] + after[step : step + 1]
    shown = sorted(outwards[:limit], key=_number)
    places = {one.id: place for place, one in enumerate(shown)}
    return shown, [places[one.id] for one in outwards[:limit]]


def _number(one: Observation) -> int:
    return one.id


def _item(
    one: Observation, focus: Observation, arguments: MemTimelineArguments, context: ToolContext
) -> Item:
    own = context.origin.project
    if one is not focus:
        return item_of(one, own, arguments.detail_level)
    item = item_of(one, own, arguments.detail_level, f"{FOCUS}{line_of(one, own)}")
    return Item((*item.forms, f"{FOCUS}#{one.id}"))


TOOL = MemTimeline()
