"""The tool `sdd_get_context`: stages, changes and documents of the specification."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from efrit_budget.memory.observation import DEFAULT_SCOPE
from efrit_budget.memory.wording import ARTIFACTS, Detail
from efrit_budget.project.documents import ChangeFolder, Document, Specification, specification
from efrit_budget.project.specs import Specs
from efrit_budget.results.body import Body, Source
from efrit_budget.results.marks import own
from efrit_budget.tools.answers import Found, fitted, paged
from efrit_budget.tools.base import Arguments, Hint, Outcome, Tool, ToolContext, answer, failure
from efrit_budget.tools.layout.specs import Teller, left_out, section
from efrit_budget.tools.sizes import counted

Stage = Literal[
    "principles",
    "charter",
    "requirements",
    "business-rules",
    "clarifications",
    "design",
    "tasks",
    "validate",
]


class SddGetContextArguments(Arguments):
    """The arguments of `sdd_get_context`."""

    stage: Stage | None = None
    detail_level: Detail = "summary"
    limit: Annotated[int, Field(ge=1, le=1000)] = 50
    project: SkipJsonSchema[str | None] = None
    scope: SkipJsonSchema[str | None] = None

    def not_here(self, own: str) -> str | None:
        """Return why the arguments name a project or scope that has no files here, or None."""
        if self.project not in (None, "", own):
            return f"project: only {own} has its files here; leave project out"
        if self.scope not in (None, "", DEFAULT_SCOPE):
            return f"scope: files have the scope {DEFAULT_SCOPE}; leave scope out"
        return None


class SddGetContext(Tool):
    """Lists the specification, or returns the files of one stage."""

    name = "sdd_get_context"
    description = (
        "The project's specification, by default in summary: stage files, change folders, "
        "convention files, documents."
    )
    arguments = SddGetContextArguments
    hint = Hint("artifacts", tokens_each=30, parameter="limit")

    def run(self, arguments: SddGetContextArguments, context: ToolContext) -> Outcome:
        """List the specification, or return the files of one stage."""
        problem = arguments.not_here(context.origin.project)
        if problem is not None:
            return failure(f"{self.name}: {problem}")
        found = specification(context.project, context.find_rg(), context.cancellation)
        if arguments.stage is not None:
            return _stage(arguments.stage, found, arguments.max_tokens, context)
        return _overview(arguments, found, context)

    def compress(self, arguments: SddGetContextArguments, outcome: Outcome) -> str:
        """Return the paths that were listed, or those of the stage that was read."""
        if arguments.stage is not None:
            paths = outcome.whole.data.get("paths", [])
            return f"Read the stage {arguments.stage}: {', '.join(paths) or 'no file'}"[:500]
        facts = outcome.whole.item_data
        names = ", ".join(one["path"] for one in facts)
        return f"Listed {counted(len(facts), 'artifact')} of the specification: {names}"[:500]


def _stage(
    stage: str, found: Specification, max_tokens: int | None, context: ToolContext
) -> Outcome:
    """Return the paths and texts of the files of one stage, or say that there is none."""
    documents = [document for document in found.documents if document.stage == stage]
    if not documents:
        there = [f"{one.stage} ({one.name})" for one in found.documents if one.stage]
        others = f"; there are: {', '.join(there)}" if there else ""
        text = f"No file of the stage {stage} in {_folders(context.project.specs)}{others}."
        return answer(text, {"stage": stage, "paths": []})
    teller = Teller("full", context)
    text = "\n".join(map(teller.with_text, documents))
    body = paged(f"{text}\n", max_tokens, context)
    paths = [document.name for document in documents]
    data = {**body.data, "stage": stage, "paths": paths}
    sources = tuple(Source(one.located.name, one.modified_ns, one.size) for one in documents)
    return Outcome(body=replace(body, data=data, sources=sources))


def _folders(specs: Specs) -> str:
    return ", ".join(f"{folder.rstrip('/')}/" for folder in specs.folders)


def _overview(
    arguments: SddGetContextArguments, found: Specification, context: ToolContext
) -> Outcome:
    """Return the sections with at most `limit` documents and change folders together."""
    teller = Teller(arguments.detail_level, context)
    remaining, sections = arguments.limit, []
    for title, things in _parts(found):
        sections.append(section(title, things[:remaining], teller))
        remaining = max(0, remaining - len(things))
    total = sum(len(things) for _, things in _parts(found))
    if not total:
        specs = context.project.specs
        nothing = (
            f"No specification: no document in {_folders(specs)}, and none of "
            f"{', '.join(specs.conventions)}. The settings specs.* name other places."
        )
        return Outcome(body=Body(f"{own(nothing)}\n{left_out(found)}", data={"artifacts": []}))
    missing = own(f"Stages without a file: {', '.join(found.missing_stages)}") + "\n"
    lead = own("# Specification") + "\n" + (missing if found.missing_stages else "")
    answer = Found(lead + left_out(found), sections, "artifacts", total, ARTIFACTS)
    return fitted(answer, arguments.max_tokens, context)


def _parts(found: Specification) -> list[tuple[str, Sequence[Document | ChangeFolder]]]:
    """Return the title and the content of each section, other documents last."""
    return [
        ("## Stages", [one for one in found.documents if one.stage]),
        ("## Changes", found.changes),
        ("## Conventions", found.conventions),
        ("## Documents", [one for one in found.documents if not one.stage]),
    ]


TOOL = SddGetContext()
