"""The tool `mem_save`: saves an observation."""

from typing import Annotated

from pydantic import Field

from efrit_budget.errors import JsonObject
from efrit_budget.memory.observation import (
    DEFAULT_IMPORTANCE,
    DEFAULT_KIND,
    DEFAULT_SCOPE,
    Draft,
    ObservationError,
    Saved,
)
from efrit_budget.memory.private import public
from efrit_budget.tools.base import Outcome, Tool, ToolContext, answer, failure
from efrit_budget.tools.layout.observations import Id, ShortArguments

MUCH_ALIKE = 60
"""The percentage of words of two observations that are in both, from which the other is named."""
MOST_ALIKE = 3


class MemSaveArguments(ShortArguments):
    """The arguments of `mem_save`."""

    id: Annotated[Id | None, Field(description="Changes this one")] = None
    title: str
    content: str
    type: Annotated[str, Field(description="decision, fix, explore, ...")] = DEFAULT_KIND
    project: Annotated[str | None, Field(description="Default: this one")] = None
    scope: str = DEFAULT_SCOPE
    topic_key: Annotated[str | None, Field(description="Replaces what has it")] = None
    tags: list[str] = Field(default_factory=list)
    importance: Annotated[float, Field(description="0 to 1")] = DEFAULT_IMPORTANCE
    related: list[Id] = Field(default_factory=list)


class MemSave(Tool):
    """Saves one observation for all sessions."""

    name = "mem_save"
    description = (
        "Keep an observation in memory, for all sessions. <private>...</private> is left out."
    )
    arguments = MemSaveArguments
    has_effects = True

    def run(self, arguments: MemSaveArguments, context: ToolContext) -> Outcome:
        """Save the observation; it is on the disk before this returns."""
        if arguments.id is not None:
            return self._change(arguments.id, arguments, context)
        project = context.origin.project if arguments.project is None else arguments.project
        draft = Draft(
            title=arguments.title,
            content=arguments.content,
            project=project,
            kind=arguments.type,
            scope=arguments.scope,
            topic_key=arguments.topic_key,
            tags=tuple(arguments.tags),
            importance=arguments.importance,
            session=context.origin.session,
            tool=self.name,
            related=tuple(arguments.related),
        )
        try:
            saved = context.memory.save(draft)
        except ObservationError as error:
            return failure(f"{self.name}: {error.message}")
        data = {"id": saved.id, "revision": saved.revision, "outcome": saved.outcome}
        near = context.memory.alike(saved.id, MUCH_ALIKE, MOST_ALIKE) if saved.is_new else []
        names = ", ".join(f"#{one.id} {one.title} ({percent}%)" for one, percent in near)
        more = f" Much the same words: {names}." if near else ""
        data["alike"] = [one.id for one, _ in near]
        return answer(f"{_outcome(saved, project)}{more}", data)

    def _change(self, number: int, arguments: MemSaveArguments, context: ToolContext) -> Outcome:
        """Save a revision of an observation; fields that are not given stay."""
        for name in ("project", "scope", "topic_key"):
            if name in arguments.model_fields_set:
                return failure(f"{self.name}: {name}: stays as it is where id is given")
        given = arguments.model_dump(
            exclude_unset=True, include={"title", "content", "tags", "importance", "related"}
        )
        if "type" in arguments.model_fields_set:
            given["kind"] = arguments.type
        origin = {"session": context.origin.session, "tool": self.name}
        try:
            saved = context.memory.change(number, given | origin)
        except ObservationError as error:
            return failure(f"{self.name}: {error.message}")
        data = {"id": saved.id, "revision": saved.revision, "outcome": saved.outcome}
        return answer(_outcome(saved, ""), data)

    def compress(self, arguments: MemSaveArguments, outcome: Outcome) -> str:
        """Return the answer, with the observation's number, and the title."""
        return f"{outcome.text.strip()} {arguments.title}"[:500]

    def kept_arguments(self, arguments: JsonObject) -> JsonObject:
        """Return the arguments without the text in <private> tags."""
        return dict(public(arguments))


def _outcome(saved: Saved, project: str) -> str:
    if saved.left_out:
        return (
            f"#{saved.id} holds the same content since minutes ago and was counted once more; not"
            f" kept: another {', another '.join(saved.left_out)}."
            f" With id {saved.id} it is changed; a topic_key of its own keeps both."
        )
    if saved.outcome == "duplicate":
        return f"#{saved.id} holds the same since minutes ago; nothing was added."
    if saved.outcome == "updated":
        return f"Updated #{saved.id} to revision {saved.revision}; earlier ones stay readable."
    return f"Saved #{saved.id} in project {project}."


TOOL = MemSave()
