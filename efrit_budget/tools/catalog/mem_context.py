"""What there is to know at the start: past sessions, what was asked, what was saved last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from efrit_budget.budget.plain import dearest
from efrit_budget.results.ladder import Item, pack
from efrit_budget.results.sections import Section
from efrit_budget.tools.base import Arguments, Hint, Outcome, Policy, ToolContext
from efrit_budget.tools.fitted import Found, fitted
from efrit_budget.tools.remembered import (
    Limit,
    ReadArguments,
    beginning,
    fact_of,
    item_of,
    minute,
)

PAST = 5
"""How many sessions and how many requests are told of."""
SHARE = 6
"""Of a given budget each of these two sections takes at most one part in so many."""
PROMPT = 160
HINT = "Increase limit or use mem_get_observation #ID for details."


class MemContextArguments(ReadArguments):
    """The arguments of `mem_context`."""

    limit: Limit = 20


class MemContext:
    """Three sections, of which the observations are counted."""

    name: ClassVar[str] = "mem_context"
    description: ClassVar[str] = "Latest sessions, requests and observations in memory."
    arguments: ClassVar[type[Arguments]] = MemContextArguments
    policy: ClassVar[Policy] = Policy.ALLOW
    has_effects: ClassVar[bool] = False
    hint: ClassVar[Hint | None] = None

    def run(self, arguments: MemContextArguments, context: ToolContext) -> Outcome:
        """Collect the sections and tell of them."""
        filters = arguments.filters()
        total = context.memory.count(filters)
        observations = context.memory.recent(filters, arguments.limit)
        lead = _lead(arguments, context)
        if not total:
            return Outcome(f"{lead}No observation was saved.", {"observations": []})
        own, detail = context.origin.project, arguments.detail_level
        section = Section(
            "## Observations" if lead else None,
            [item_of(one, own, detail) for one in observations],
            list(map(fact_of, observations)),
        )
        found = Found(lead, [section], "observations", total, HINT)
        return fitted(found, arguments.max_tokens, context)

    def compress(self, arguments: MemContextArguments, outcome: Outcome) -> str:
        """Which observations were told of."""
        facts = outcome.whole.item_data
        names = "; ".join(f"#{one['id']} {one['title']}" for one in facts)
        of = "" if arguments.project is None else f" of {arguments.project}"
        return f"Read the latest {len(facts)} observations{of}: {names}"[:500]


def _lead(arguments: MemContextArguments, context: ToolContext) -> str:
    """The sections before the observations, in their share of a budget that is given."""
    memory, but = context.memory, context.origin.session
    sessions = [
        f"{one.id} ({minute(one.touched)}) {' '.join(one.title.split())}".rstrip()
        for one in memory.sessions(arguments.project, but, PAST)
    ]
    prompts = [
        f"{minute(one.asked)} {beginning(' '.join(one.text.split()), PROMPT)}"
        for one in memory.prompts(arguments.project, but, PAST)
    ]
    parts = (("## Sessions", sessions), ("## Requests", prompts))
    return "".join(_part(title, lines, arguments, context) for title, lines in parts)


def _part(
    title: str, lines: Sequence[str], arguments: MemContextArguments, context: ToolContext
) -> str:
    """A section's lines; where the budget leaves some out, its title counts them."""
    if not lines:
        return ""
    shown = list(lines)
    if arguments.max_tokens is not None:
        price = dearest(context.cost)
        room = context.allowance // SHARE - price(f"{title} (5 of 5)\n")
        shown = list(pack([Item((line,)) for line in lines], max(0, room), price).lines)
    if not shown:
        return ""
    counts = "" if len(shown) == len(lines) else f" ({len(shown)} of {len(lines)})"
    return "\n".join((f"{title}{counts}", *shown, ""))


TOOL = MemContext()
