"""How much is remembered, of what, and of which projects."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from efrit_budget.memory.observation import Filters, Stats
from efrit_budget.tools.base import Arguments, Hint, Outcome, Policy, ToolContext
from efrit_budget.tools.fitted import paged
from efrit_budget.tools.remembered import ShortArguments, minute


class MemStatsArguments(ShortArguments):
    """The arguments of `mem_stats`."""

    project: str | None = None


class MemStats:
    """Counts, by type, project and scope."""

    name: ClassVar[str] = "mem_stats"
    description: ClassVar[str] = "Count memory by type, project and scope."
    arguments: ClassVar[type[Arguments]] = MemStatsArguments
    policy: ClassVar[Policy] = Policy.ALLOW
    has_effects: ClassVar[bool] = False
    hint: ClassVar[Hint | None] = None

    def run(self, arguments: MemStatsArguments, context: ToolContext) -> Outcome:
        """Count."""
        stats = context.memory.stats(Filters(project=arguments.project))
        body = paged(_told(stats), arguments.max_tokens, context)
        return Outcome(body=replace(body, data={**body.data, **vars(stats)}))

    def compress(self, arguments: MemStatsArguments, outcome: Outcome) -> str:
        """The counts, as far as there is room."""
        of = "" if arguments.project is None else f" of {arguments.project}"
        return f"Counted memory{of}: {outcome.whole.text}"[:500]


def _told(stats: Stats) -> str:
    earlier = f"{stats.revisions:,} earlier revisions"
    lines = [f"{stats.observations:,} observations, {earlier}, {stats.deleted:,} deleted"]
    if stats.oldest is not None and stats.newest is not None:
        lines.append(f"changed from {minute(stats.oldest)} to {minute(stats.newest)}")
    for name, counts in (
        ("type", stats.kinds),
        ("project", stats.projects),
        ("scope", stats.scopes),
    ):
        if counts:
            each = ", ".join(f"{key or '(none)'} {number:,}" for key, number in counts.items())
            lines.append(f"{name}: {each}")
    return "\n".join(lines) + "\n"


TOOL = MemStats()
