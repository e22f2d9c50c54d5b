"""The tool `context_pack`: packs whole observations into one text."""

from typing import Annotated

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from efrit_budget.budget.plain import dearest
from efrit_budget.memory.observation import Filters
from efrit_budget.memory.packs import DEFAULT_BUDGET, Markdown, context_pack, facts_of
from efrit_budget.results.body import Body
from efrit_budget.results.footer import LONGEST_FOOTER
from efrit_budget.tools.base import Arguments, Outcome, Tool, ToolContext
from efrit_budget.tools.sizes import counted


class ContextPackArguments(Arguments):
    """The arguments of `context_pack`."""

    query: Annotated[str, Field(description="Words it must hold")] = ""
    project: Annotated[str | None, Field(description="Default: this one; empty: all")] = None
    kind: str | None = None
    tags: list[str] = Field(default_factory=list)
    scope: SkipJsonSchema[str | None] = None


class ContextPack(Tool):
    """Packs the highest-ranked observations that fit `max_tokens`."""

    name = "context_pack"
    description = (
        "The project's memories whole, the best first, as one Markdown text of max_tokens "
        f"(default {DEFAULT_BUDGET})."
    )
    arguments = ContextPackArguments

    def run(self, arguments: ContextPackArguments, context: ToolContext) -> Outcome:
        """Return the pack of observations that fits beside the footer."""
        price = dearest(context.cost)
        budget = min(context.allowance, arguments.max_tokens or DEFAULT_BUDGET)
        project = context.origin.project if arguments.project is None else arguments.project
        filters = Filters(
            project or None, arguments.scope or None, arguments.kind or None, tuple(arguments.tags)
        )
        room, form = budget - price(LONGEST_FOOTER), Markdown(marked=True)
        written = context_pack(context.memory, arguments.query, filters, room, form, price)
        pack = written.pack
        data = {
            "memories": [facts_of(memory) for memory in pack.memories],
            "total_tokens": written.tokens,
            "budget": pack.budget,
            "project_id": pack.project,
            "left_out": pack.left_out,
        }
        return Outcome(body=Body(f"{written.text}\n", data=data))

    def compress(self, arguments: ContextPackArguments, outcome: Outcome) -> str:
        """Return the number, ids and titles of the packed observations."""
        memories = outcome.whole.data["memories"]
        names = ", ".join(f"#{one['id']} {one['title']}" for one in memories)
        on = f" on {arguments.query[:100]!r}" if arguments.query else ""
        return f"Packed {counted(len(memories), 'observation')}{on}: {names}"[:500]


TOOL = ContextPack()
