"""The tool `mem_stats`: counts the observations in memory."""

from dataclasses import replace

from pydantic.json_schema import SkipJsonSchema

from efrit_budget.memory.observation import Filters, Stats
from efrit_budget.memory.wording import Detail
from efrit_budget.results.marks import MARK, own
from efrit_budget.tools.answers import paged
from efrit_budget.tools.base import Outcome, Tool, ToolContext
from efrit_budget.tools.layout.observations import Limit, ShortArguments, minute

STANDARD = 20
"""The most types, projects and scopes that are listed by default."""


class MemStatsArguments(ShortArguments):
    """The arguments of `mem_stats`."""

    project: str | None = None
    scope: SkipJsonSchema[str | None] = None
    detail_level: SkipJsonSchema[Detail] = "standard"
    limit: SkipJsonSchema[Limit | None] = None

    @property
    def rows(self) -> int | None:
        """The most types, projects and scopes to list; None means all."""
        if self.detail_level == "summary":
            return 0
        return self.limit or (STANDARD if self.detail_level == "standard" else None)


class MemStats(Tool):
    """Counts observations by type, project and scope."""

    name = "mem_stats"
    description = "Count memory by type, project and scope."
    arguments = MemStatsArguments

    def run(self, arguments: MemStatsArguments, context: ToolContext) -> Outcome:
        """Return the counts of observations by type, project and scope."""
        filters = Filters(arguments.project or None, arguments.scope or None)
        stats = context.memory.stats(filters)
        body = paged(_lines(stats, arguments.rows), arguments.max_tokens, context)
        return Outcome(body=replace(body, data={**body.data, **vars(stats)}))

    def compress(self, arguments: MemStatsArguments, outcome: Outcome) -> str:
        """Return the beginning of the counts, as far as 500 characters hold it."""
        of = f" of {arguments.project}" if arguments.project else ""
        text = outcome.whole.text.replace(f"{MARK} ", "")
        return f"Counted memory{of}: {text}"[:500]


def _lines(stats: Stats, rows: int | None) -> str:
    earlier = f"{stats.revisions:,} earlier revisions"
    lines = [f"{stats.observations:,} observations, {earlier}, {stats.deleted:,} deleted"]
    if stats.oldest is not None and stats.newest is not None:
        lines.append(f"changed from {minute(stats.oldest)} to {minute(stats.newest)}")
    for name, counts in (
        ("type", stats.kinds),
        ("project", stats.projects),
        ("scope", stats.scopes),
    ):
        entries = [f"{key or '(none)'} {number:,}" for key, number in list(counts.items())[:rows]]
        if entries:
            more = [f"{len(counts) - len(entries):,} more"] if len(entries) < len(counts) else []
            lines.append(f"{name}: {', '.join(entries + more)}")
    return "".join(f"{own(line)}\n" for line in lines)


TOOL = MemStats()
