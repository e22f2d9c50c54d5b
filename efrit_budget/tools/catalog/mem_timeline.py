"""The tool `mem_timeline`: observations before and after one of the same session."""

from pydantic.json_schema import SkipJsonSchema

from efrit_budget.memory.observation import Observation, Timeline
from efrit_budget.memory.packs import index_of
from efrit_budget.memory.wording import IN_SESSION, Detail
from efrit_budget.results.marks import MARK
from efrit_budget.results.packer import Item, Section, outwards
from efrit_budget.tools.answers import Found, fitted
from efrit_budget.tools.base import Outcome, Tool, ToolContext, failure
from efrit_budget.tools.layout.observations import (
    Beside,
    Id,
    Limit,
    ReadArguments,
    item_of,
    line_of,
)

FOCUS = "> "


class MemTimelineArguments(ReadArguments):
    """The arguments of `mem_timeline`."""

    project: SkipJsonSchema[str | None] = None
    scope: SkipJsonSchema[str | None] = None
    id: Id
    before: Beside = 5
    after: Beside = 5
    limit: SkipJsonSchema[Limit | None] = None


class MemTimeline(Tool):
    """Returns an observation, the focus, between its neighbours in the session."""

    name = "mem_timeline"
    description = "Observations before and after one, in its session."
    arguments = MemTimelineArguments

    def run(self, arguments: MemTimelineArguments, context: ToolContext) -> Outcome:
        """Return the timeline; leave out observations far from the focus if they do not fit."""
        timeline = context.memory.timeline(
            arguments.id, arguments.before, arguments.after, arguments.filters()
        )
        if timeline is None:
            return failure(f"there is no observation #{arguments.id}; mem_search finds some")
        nearest = _nearest(timeline, arguments.limit)
        section = Section(
            None,
            [_item(one, timeline.focus, arguments, context) for one in nearest],
            [{**index_of(one), "focus": one is timeline.focus} for one in nearest],
            nearest.index(timeline.focus),
        )
        found = Found("", [section], "observations", timeline.total, IN_SESSION)
        return fitted(found, arguments.max_tokens, context)

    def compress(self, arguments: MemTimelineArguments, outcome: Outcome) -> str:
        """Return the id of the focus, and the ids and titles of the listed observations."""
        names = "; ".join(f"#{one['id']} {one['title']}" for one in outcome.whole.item_data)
        return f"Read the timeline around #{arguments.id}: {names}"[:500]


def _nearest(timeline: Timeline, limit: int | None) -> list[Observation]:
    """Return the focus and its nearest neighbours, at most `limit` in all, in time order."""
    window = [*timeline.before, timeline.focus, *timeline.after]
    places = list(outwards(len(timeline.before), len(window)))[:limit]
    return [window[place] for place in sorted(places)]


def _item(
    one: Observation, focus: Observation, arguments: MemTimelineArguments, context: ToolContext
) -> Item:
    own = context.origin.project
    if one is not focus:
        return item_of(one, own, arguments.detail_level)
    detail: Detail = "summary" if arguments.detail_level == "summary" else "full"
    item = item_of(one, own, detail, f"{FOCUS}{line_of(one, own)}")
    plain = f"{MARK} "
    return Item(item.forms, tuple(name.replace(plain, f"{plain}{FOCUS}", 1) for name in item.names))


TOOL = MemTimeline()
