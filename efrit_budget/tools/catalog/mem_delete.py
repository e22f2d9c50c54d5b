"""The tool `mem_delete`: deletes an observation."""

from typing import Annotated

from pydantic import Field

from efrit_budget.tools.base import Outcome, Policy, Tool, ToolContext, answer, failure
from efrit_budget.tools.layout.observations import Id, ShortArguments

SESSIONS = "Sessions that saved or read it keep their own record until they are purged."


class MemDeleteArguments(ShortArguments):
    """The arguments of `mem_delete`."""

    id: Id
    for_good: Annotated[bool, Field(description="Also from the disk")] = False


class MemDelete(Tool):
    """Marks an observation as deleted, so that no search finds it, or removes it from the disk."""

    name = "mem_delete"
    description = "Delete an observation."
    arguments = MemDeleteArguments
    policy = Policy.ASK
    has_effects = True

    def run(self, arguments: MemDeleteArguments, context: ToolContext) -> Outcome:
        """Delete the observation, for good also one that is deleted; or say that there is none."""
        one, memory = context.memory.get(arguments.id), context.memory
        delete = memory.erase if arguments.for_good else memory.delete
        if one is None or not delete(arguments.id):
            return failure(f"there is no observation #{arguments.id}; mem_search finds some")
        if arguments.for_good:
            return answer(f"Deleted #{one.id} for good. {SESSIONS}", {"id": one.id})
        return answer(f"Deleted #{one.id} {one.title}", {"id": one.id, "title": one.title})

    def compress(self, arguments: MemDeleteArguments, outcome: Outcome) -> str:
        """Return the number and title of the deleted observation."""
        return outcome.text[:500] or f"Deleted #{arguments.id}"


TOOL = MemDelete()
