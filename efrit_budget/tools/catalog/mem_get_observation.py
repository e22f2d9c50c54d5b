"""One observation, whole."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from efrit_budget.memory.observation import Observation, Revision
from efrit_budget.memory.packs import facts_of
from efrit_budget.tools.base import Arguments, Hint, Outcome, Policy, ToolContext, failure
from efrit_budget.tools.fitted import paged
from efrit_budget.tools.remembered import Id, minute


class MemGetObservationArguments(Arguments):
    """The arguments of `mem_get_observation`."""

    id: Id
    revision: Id | None = None


class MemGetObservation:
    """All that is known of an observation, and its content."""

    name: ClassVar[str] = "mem_get_observation"
    description: ClassVar[str] = "An observation, whole."
    arguments: ClassVar[type[Arguments]] = MemGetObservationArguments
    policy: ClassVar[Policy] = Policy.ALLOW
    has_effects: ClassVar[bool] = False
    hint: ClassVar[Hint | None] = None

    def run(self, arguments: MemGetObservationArguments, context: ToolContext) -> Outcome:
        """Read it; that it was read counts in its rank."""
        one = context.memory.get(arguments.id)
        if one is None:
            return failure(f"there is no observation #{arguments.id}; mem_search finds some")
        if one.deleted is not None:
            return failure(f"observation #{one.id} was deleted at {minute(one.deleted)}")
        earlier = context.memory.revisions(one.id)
        told = one if arguments.revision in (None, one.revision) else _as(one, earlier, arguments)
        if told is None:
            numbers = ", ".join(str(each.revision) for each in earlier)
            return failure(
                f"observation #{one.id} has no revision {arguments.revision};"
                f" there are: {', '.join(filter(None, (numbers, str(one.revision))))}"
            )
        context.memory.note_access(one.id)
        related = context.memory.related(one.id)
        text = f"{_head(told, one, related)}\n\n{told.content}\n"
        body = paged(text, arguments.max_tokens, context)
        return Outcome(body=replace(body, data={**body.data, **facts_of(told)}))

    def compress(self, arguments: MemGetObservationArguments, outcome: Outcome) -> str:
        """Its head, and how its content begins."""
        text = outcome.whole.text
        return (text if text.startswith("#") else f"Read observation #{arguments.id}")[:500]


def _as(
    one: Observation, earlier: list[Revision], arguments: MemGetObservationArguments
) -> Observation | None:
    """The observation as it was in a revision."""
    found = next((each for each in earlier if each.revision == arguments.revision), None)
    return None if found is None else replace(one, **vars(found))


def _head(told: Observation, latest: Observation, related: list[tuple[int, str]]) -> str:
    """The lines above the content."""
    facts = [
        f"saved {minute(told.created)}",
        f"changed {minute(told.updated)}" if told.updated != told.created else "",
        f"project {told.project}" if told.project else "",
        f"scope {told.scope}",
        f"importance {told.importance:g}",
        f"tags: {', '.join(told.tags)}" if told.tags else "",
        f"topic_key {told.topic_key}" if told.topic_key else "",
        f"session {told.session}" if told.session else "",
        f"revision {told.revision} of {latest.revision}" if latest.revision > 1 else "",
        f"saved again {latest.duplicates} times" if latest.duplicates else "",
    ]
    names = "; ".join(f"#{number} {title}" for number, title in related)
    lines = [
        f"#{told.id} [{told.kind}] {told.title}",
        ", ".join(filter(None, facts)),
        f"Related: {names}" if names else "",
    ]
    return "\n".join(filter(None, lines))


TOOL = MemGetObservation()
