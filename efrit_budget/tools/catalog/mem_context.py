"""The tool `mem_context`: past sessions, user messages and recent observations."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from efrit_budget.budget.plain import Cost, dearest
from efrit_budget.memory.observation import EVERYTHING, Filters
from efrit_budget.memory.packs import index_of
from efrit_budget.memory.wording import OBSERVATIONS
from efrit_budget.results.body import Body
from efrit_budget.results.marks import own as own_line
from efrit_budget.results.packer import Item, Section, pack
from efrit_budget.tools.answers import Found, fitted
from efrit_budget.tools.base import Outcome, Tool, ToolContext
from efrit_budget.tools.layout.observations import Limit, ReadArguments, beginning, item_of, minute

PAST = 5
"""The most sessions, and the most requests (user messages), that are listed."""
SHARE = 6
"""The sections of sessions and requests each take at most one sixth of a given budget."""
PROMPT = 160


class MemContextArguments(ReadArguments):
    """The arguments of `mem_context`."""

    project: Annotated[str | None, Field(description="Empty: all")] = None
    limit: Limit = 20

    def meant(self, own: str) -> Filters:
        """Return the filters: the project `own` unless another is given; an empty one means all."""
        return Filters(own if self.project is None else self.project or None, self.scope or None)


class MemContext(Tool):
    """Returns the latest sessions, requests and observations; counts the observations."""

    name = "mem_context"
    description = "This project's latest sessions, requests and observations."
    arguments = MemContextArguments

    def run(self, arguments: MemContextArguments, context: ToolContext) -> Outcome:
        """Return the latest sessions, requests and observations, as far as they fit."""
        own, detail = context.origin.project, arguments.detail_level
        filters = arguments.meant(own)
        total = context.memory.count(filters)
        lead = _lead(filters.project, arguments, context)
        if not total:
            text = f"{lead}{own_line(_nothing(filters, context))}"
            return Outcome(body=Body(text, data={"observations": []}))
        observations = context.memory.recent(filters, arguments.limit)
        section = Section(
            "## Observations" if lead else None,
            [item_of(one, own, detail) for one in observations],
            list(map(index_of, observations)),
        )
        found = Found(lead, [section], "observations", total, OBSERVATIONS)
        return fitted(found, arguments.max_tokens, context)

    def compress(self, arguments: MemContextArguments, outcome: Outcome) -> str:
        """Return the number, ids and titles of the listed observations."""
        facts = outcome.whole.item_data
        names = "; ".join(f"#{one['id']} {one['title']}" for one in facts)
        of = f" of {arguments.project}" if arguments.project else ""
        return f"Read the latest {len(facts)} observations{of}: {names}"[:500]


def _nothing(filters: Filters, context: ToolContext) -> str:
    """Return the line that says that no observation was saved."""
    others = context.memory.count() if filters != EVERYTHING else 0
    more = f"; of others {others:,}, which an empty project shows" if others else ""
    of = f" of project {filters.project}" if filters.project else ""
    return f"No observation{of} was saved{more}."


def _lead(project: str | None, arguments: MemContextArguments, context: ToolContext) -> str:
    """Return the sections of sessions and requests, within their shares of the budget."""
    past = context.memory.recent_sessions(project, context.origin.session, PAST)
    sessions = [
        f"{one.id} ({minute(one.touched)}) {' '.join(one.title.split())}".rstrip()
        for one in past.sessions
    ]
    prompts = [
        f"{minute(one.asked)} {beginning(' '.join(one.text.split()), PROMPT)}"
        for one in past.prompts
    ]
    room = None if arguments.max_tokens is None else context.allowance // SHARE
    parts = (
        _part("## Sessions", sessions, past.session_count, room, context.cost),
        _part("## Requests", prompts, past.prompt_count, room, context.cost),
    )
    return "".join(parts)


def _part(title: str, lines: Sequence[str], in_all: int, room: int | None, cost: Cost) -> str:
    """Return a section with its title, and the lines that fit `room`; nothing if none fits."""
    visible, price = tuple(lines), dearest(cost)
    if room is not None:
        remaining = room - price(f"{own_line(title)} ({len(lines)} of {in_all:,})\n")
        visible = pack([Item((line,)) for line in lines], max(0, remaining), price).texts
    if not visible:
        return ""
    counts = f" ({len(visible)} of {in_all:,})" if len(visible) < in_all else ""
    return "\n".join((own_line(f"{title}{counts}"), *visible, ""))


TOOL = MemContext()
