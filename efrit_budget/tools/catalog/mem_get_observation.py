"""The tool `mem_get_observation`: returns one observation."""

from dataclasses import replace

from pydantic.json_schema import SkipJsonSchema

from efrit_budget.memory.observation import Observation
from efrit_budget.memory.packs import facts_of, index_of
from efrit_budget.memory.wording import Detail
from efrit_budget.results.marks import MARK, own, quote
from efrit_budget.tools.answers import paged
from efrit_budget.tools.base import Arguments, Outcome, Tool, ToolContext, failure
from efrit_budget.tools.layout.observations import Id, Limit, beginning, minute


class MemGetObservationArguments(Arguments):
    """The arguments of `mem_get_observation`."""

    id: Id
    revision: Id | None = None
    detail_level: SkipJsonSchema[Detail] = "full"
    project: SkipJsonSchema[str | None] = None
    scope: SkipJsonSchema[str | None] = None
    limit: SkipJsonSchema[Limit | None] = None
    """The most related observations that are named; None means all."""


class MemGetObservation(Tool):
    """Returns an observation with all its details."""

    name = "mem_get_observation"
    description = "An observation, whole."
    arguments = MemGetObservationArguments

    def run(self, arguments: MemGetObservationArguments, context: ToolContext) -> Outcome:
        """Return the observation, and count the access, which raises its rank in searches."""
        one = context.memory.get(arguments.id)
        if one is None:
            return failure(f"there is no observation #{arguments.id}; mem_search finds some")
        if one.deleted is not None:
            return failure(f"observation #{one.id} was deleted at {minute(one.deleted)}")
        for name, requested, there in (
            ("project", arguments.project, one.project),
            ("scope", arguments.scope, one.scope),
        ):
            if requested and requested != there:
                return failure(f"observation #{one.id} is of {name} {there or '(none)'}")
        return _read(one, arguments, context)

    def compress(self, arguments: MemGetObservationArguments, outcome: Outcome) -> str:
        """Return the first 500 characters: the header and the beginning of the content."""
        text = outcome.whole.text
        unmarked = text.removeprefix(f"{MARK} ")
        return (unmarked if unmarked.startswith("#") else f"Read observation #{arguments.id}")[:500]


def _read(one: Observation, arguments: MemGetObservationArguments, context: ToolContext) -> Outcome:
    """Return the requested revision of an observation at the requested detail level."""
    earlier = {each.revision: each for each in context.memory.revisions(one.id)}
    observation, revision = one, arguments.revision or one.revision
    if revision != one.revision:
        if revision not in earlier:
            return failure(
                f"observation #{one.id} has no revision {revision};"
                f" there are: {', '.join(map(str, (*earlier, one.revision)))}"
            )
        observation = replace(one, **vars(earlier[revision]))
    context.memory.note_access(one.id)
    related = context.memory.related(one.id)[: arguments.limit]
    head, detail = _head(observation, one, related), arguments.detail_level
    text = f"{head}\n\n{quote(observation.content)}" if detail == "full" else head
    if detail == "standard":
        text = f"{head}\n\n{quote(beginning(observation.content))}"
    body = paged(f"{text}\n", arguments.max_tokens, context)
    facts = facts_of(observation) if detail == "full" else index_of(observation)
    return Outcome(body=replace(body, data={**body.data, **facts}))


def _head(told: Observation, latest: Observation, related: list[tuple[int, str]]) -> str:
    """Return the lines above the content of a revision (`told`) of the observation `latest`."""
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
    return "\n".join(map(own, filter(None, lines)))


TOOL = MemGetObservation()
