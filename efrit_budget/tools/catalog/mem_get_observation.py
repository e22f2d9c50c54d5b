"""The tool `mem_get_observation`: returns one observation, or several."""

from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema
from pydantic.json_schema import SkipJsonSchema

from efrit_budget.errors import Json, JsonObject
from efrit_budget.memory.observation import Observation
from efrit_budget.memory.packs import facts_of, index_of
from efrit_budget.memory.wording import Detail
from efrit_budget.results.marks import MARK, own, quote
from efrit_budget.tools.answers import paged
from efrit_budget.tools.base import Arguments, Outcome, Tool, ToolContext, failure
from efrit_budget.tools.layout.observations import Id, Limit, beginning, minute

MOST_AT_ONCE = 50
NUMBER = {"type": "integer"}
Ids = Annotated[
    list[Id],
    Field(min_length=1, max_length=MOST_AT_ONCE),
    BeforeValidator(lambda given: given if isinstance(given, list) else [given]),
    WithJsonSchema({"anyOf": [NUMBER, {"type": "array", "items": NUMBER}]}),
]
"""One number, or a list of them."""


class MemGetObservationArguments(Arguments):
    """The arguments of `mem_get_observation`."""

    id: Ids
    revision: Id | None = None
    detail_level: SkipJsonSchema[Detail] = "full"
    project: SkipJsonSchema[str | None] = None
    scope: SkipJsonSchema[str | None] = None
    limit: SkipJsonSchema[Limit | None] = None
    """The most related observations that are named; None means all."""


class MemGetObservation(Tool):
    """Returns observations with all their details."""

    name = "mem_get_observation"
    description = "Observations, whole."
    arguments = MemGetObservationArguments

    def run(self, arguments: MemGetObservationArguments, context: ToolContext) -> Outcome:
        """Return the observations, and count each access, which raises its rank in searches."""
        found = [_read(number, arguments, context) for number in dict.fromkeys(arguments.id)]
        problems = [one for one in found if isinstance(one, str)]
        texts = [one for one in found if isinstance(one, _Read)]
        if not texts:
            return failure("; ".join(problems))
        lines = [own(problem) for problem in problems]
        text = "\n\n".join([*(one.text for one in texts), *lines])
        body = paged(f"{text}\n", arguments.max_tokens, context)
        facts = [one.facts for one in texts]
        several: JsonObject = {"observations": list[Json](facts)}
        data = several if len(found) > 1 else facts[0]
        return Outcome(body=replace(body, data={**body.data, **data}))

    def compress(self, arguments: MemGetObservationArguments, outcome: Outcome) -> str:
        """Return the first 500 characters: the header and the beginning of the content."""
        text = outcome.whole.text
        unmarked = text.removeprefix(f"{MARK} ")
        facts = outcome.whole.data.get("observations", ())
        titles = "; ".join(f"#{one['id']} {one['title']}" for one in facts)
        numbers = ", ".join(f"#{number}" for number in arguments.id)
        whole = unmarked if unmarked.startswith("#") else f"Read observation {numbers}"
        return (f"Read {titles}" if titles else whole)[:500]


@dataclass(frozen=True)
class _Read:
    """An observation as text, and its facts."""

    text: str
    facts: JsonObject


def _read(number: int, arguments: MemGetObservationArguments, context: ToolContext) -> _Read | str:
    """Return the requested revision of an observation, or the reason why there is none."""
    one = context.memory.get(number)
    if one is None:
        return f"there is no observation #{number}; mem_search finds some"
    if one.deleted is not None:
        return f"observation #{one.id} was deleted at {minute(one.deleted)}"
    for name, requested, there in (
        ("project", arguments.project, one.project),
        ("scope", arguments.scope, one.scope),
    ):
        if requested and requested != there:
            return f"observation #{one.id} is of {name} {there or '(none)'}"
    earlier = {each.revision: each for each in context.memory.revisions(one.id)}
    observation, revision = one, arguments.revision or one.revision
    if revision != one.revision:
        if revision not in earlier:
            return (
                f"observation #{one.id} has no revision {revision};"
                f" there are: {', '.join(map(str, (*earlier, one.revision)))}"
            )
        observation = replace(one, **vars(earlier[revision]))
    context.memory.note_access(one.id)
    return _as_text(observation, one, arguments, context)


def _as_text(
    observation: Observation,
    latest: Observation,
    arguments: MemGetObservationArguments,
    context: ToolContext,
) -> _Read:
    """Return a revision of the observation `latest` at the requested detail level."""
    related = context.memory.related(latest.id)[: arguments.limit]
    head, detail = _head(observation, latest, related), arguments.detail_level
    text = f"{head}\n\n{quote(observation.content)}" if detail == "full" else head
    if detail == "standard":
        text = f"{head}\n\n{quote(beginning(observation.content))}"
    return _Read(text, facts_of(observation) if detail == "full" else index_of(observation))


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
