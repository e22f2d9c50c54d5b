"""The tool `mem_delete`: deletes an observation."""

from efrit_budget.tools.base import Outcome, Policy, Tool, ToolContext, answer, failure
from efrit_budget.tools.layout.observations import Id, ShortArguments


class MemDeleteArguments(ShortArguments):
    """The arguments of `mem_delete`."""

    id: Id


class MemDelete(Tool):
    """Marks an observation as deleted, so that no search finds it; it stays stored."""

    name = "mem_delete"
    description = "Delete an observation."
    arguments = MemDeleteArguments
    policy = Policy.ASK
    has_effects = True

    def run(self, arguments: MemDeleteArguments, context: ToolContext) -> Outcome:
        """Mark the observation as deleted, or say that there is none."""
        one = context.memory.get(arguments.id)
        if one is None or not context.memory.delete(arguments.id):
            return failure(f"there is no observation #{arguments.id}; mem_search finds some")
        return answer(f"Deleted #{one.id} {one.title}", {"id": one.id, "title": one.title})

    def compress(self, arguments: MemDeleteArguments, outcome: Outcome) -> str:
        """Return the number and title of the deleted observation."""
        return outcome.text[:500] or f"Deleted #{arguments.id}"


TOOL = MemDelete()
