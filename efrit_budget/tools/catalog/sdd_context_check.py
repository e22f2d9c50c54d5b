"""Find documents, changes, observations and conventions related to a change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from efrit_budget.errors import Json
from efrit_budget.memory.observation import Filters, Observation
from efrit_budget.memory.packs import NEWLINES, index_of, name_of
from efrit_budget.memory.wording import FINDINGS, Detail
from efrit_budget.project.documents import ChangeFolder, Document, Specification, specification
from efrit_budget.results.marks import own
from efrit_budget.results.packer import Item, Section
from efrit_budget.tools.answers import Found, fitted
from efrit_budget.tools.base import Arguments, Hint, Outcome, Tool, ToolContext
from efrit_budget.tools.layout.specs import CUT, EXCERPT, Teller, fact, left_out, section
from efrit_budget.tools.mentions import lines_with, mentioned, words_of
from efrit_budget.tools.sizes import counted

EXPLORE = "explore"
NO_WORD = "No word of four letters to look for in documents and changes."


@dataclass(frozen=True)
class FoundSection:
    """A section cut to a limit, and its uncut count."""

    section: Section
    total: int


class SddContextCheckArguments(Arguments):
    """The arguments of `sdd_context_check`."""

    change_description: Annotated[str, Field(min_length=1)]
    detail_level: Detail = "standard"
    project: str | None = None
    scope: SkipJsonSchema[str | None] = None
    limit: Annotated[int, Field(ge=1, le=100, description="In each section")] = 10


class SddContextCheck(Tool):
    """Counts which words of the description occur where."""

    name = "sdd_context_check"
    description = (
        "Before a change: documents, earlier changes and excerpts with words of its description, "
        "memory of type explore, convention files."
    )
    arguments = SddContextCheckArguments
    hint = Hint("findings", tokens_each=60, parameter="limit")

    def run(self, arguments: SddContextCheckArguments, context: ToolContext) -> Outcome:
        """Search all places for the words of the description."""
        words = words_of(arguments.change_description)
        found = specification(context.project, context.rg, context.cancellation)
        places = _Scan(arguments, context, found, words).places()
        none = [place.section.title or "" for place in places if not place.total]
        unasked = "" if words else own(NO_WORD) + "\n"
        lead = f"{own('# Context check')}\n{unasked}{_empty_outcome(none)}{left_out(found)}"
        total = sum(place.total for place in places)
        answer = Found(lead, [place.section for place in places], "findings", total, FINDINGS)
        return fitted(answer, arguments.max_tokens, context)

    def compress(self, arguments: SddContextCheckArguments, outcome: Outcome) -> str:
        """Return how much was found and its names."""
        facts = outcome.whole.item_data
        names = ", ".join(str(one.get("path") or f"#{one['id']}") for one in facts)
        description = arguments.change_description[:100]
        return f"Checked {description!r}: {counted(len(facts), 'finding')}: {names}"[:500]


def _empty_outcome(titles: Sequence[str]) -> str:
    names = [title.removeprefix("## ").lower() for title in titles]
    return own(f"None: {', '.join(names)}") + "\n" if names else ""


@dataclass(frozen=True)
class _Scan:
    """Searches for the words of one description."""

    arguments: SddContextCheckArguments
    context: ToolContext
    found: Specification
    words: tuple[str, ...]

    def places(self) -> list[FoundSection]:
        """Return the findings, place by place."""
        texts = {one: self._teller.read(one) for one in self.found.documents}
        return [
            self._documents("## Existing documents", self.found.documents, self._lines),
            self._changes(),
            self._memory(),
            self._documents("## Conventions", self.found.conventions, self._teller),
            *([] if self.arguments.detail_level == "summary" else [self._excerpts(texts)]),
        ]

    @property
    def _teller(self) -> Teller:
        return Teller(self.arguments.detail_level, self.context)

    @property
    def _lines(self) -> Teller:
        return Teller("summary", self.context)

    def _documents(self, title: str, documents: Sequence[Document], teller: Teller) -> FoundSection:
        """Return the documents, stages first."""
        stages_first = sorted(documents, key=lambda one: one.stage is None)
        visible = stages_first[: self.arguments.limit]
        return FoundSection(section(title, visible, teller), len(documents))

    def _changes(self) -> FoundSection:
        """Return the changes, most matching words first."""
        matches = {change: self._words_in(change) for change in self.found.changes}
        those = sorted(filter(matches.get, matches), key=lambda change: -len(matches[change]))
        visible = those[: self.arguments.limit]
        items = [self._teller.change(one, f" [{', '.join(matches[one])}]") for one in visible]
        facts = [{**fact(one), "words": list[Json](matches[one])} for one in visible]
        return FoundSection(Section("## Earlier changes with its words", items, facts), len(those))

    def _words_in(self, change: ChangeFolder) -> list[str]:
        texts = [self._teller.read(document) for document in change.documents]
        return mentioned(self.words, "\n".join([change.name, *texts]))

    def _memory(self) -> FoundSection:
        """Return related observations as memory ranks them."""
        arguments = self.arguments
        filters = Filters(arguments.project or None, arguments.scope or None, kind=EXPLORE)
        found = self.context.memory.search(arguments.change_description, filters, arguments.limit)
        if not found.total and not self.words:
            found = self.context.memory.search("", filters, arguments.limit)
        memories = [each.observation for each in found.candidates]
        own = self.context.origin.project
        items = [_observation_item(one, own, arguments.detail_level) for one in memories]
        facts = [index_of(one) for one in memories]
        return FoundSection(Section("## Memory of type explore", items, facts), found.total)

    def _excerpts(self, texts: Mapping[Document, str]) -> FoundSection:
        """Return the matching lines of the documents, most words first."""
        matches = {document: mentioned(self.words, text) for document, text in texts.items()}
        those = sorted(filter(matches.get, matches), key=lambda document: -len(matches[document]))
        visible = those[: self.arguments.limit]
        items = [self._excerpt(one, matches[one], texts[one]) for one in visible]
        facts = [{**fact(one), "words": list[Json](matches[one])} for one in visible]
        return FoundSection(Section("## Excerpts", items, facts), len(those))

    def _excerpt(self, document: Document, held: Sequence[str], text: str) -> Item:
        line = f"{document.name} [{', '.join(held)}]"
        shorter = (own(line, lines_with(self.words, text)), own(line))
        if self.arguments.detail_level == "full":
            return Item((own(line, text.rstrip()), *shorter), (own(document.name),))
        return Item(shorter, (own(document.name),))


def _observation_item(memory: Observation, own_project: str, detail: Detail) -> Item:
    """Return an observation with its number, and its project if it is another."""
    project_note = f" (project {memory.project})" if memory.project not in ("", own_project) else ""
    line, name = f"#{memory.id} {name_of(memory)}{project_note}", f"#{memory.id}"
    if detail == "summary":
        return Item((own(line),), (own(name),))
    content = memory.content.strip(NEWLINES)
    whole = own(line, content)
    short = whole if len(content) <= EXCERPT else own(line, f"{content[:EXCERPT].rstrip()}{CUT}")
    forms = (whole, short, own(line)) if detail == "full" else (short, own(line))
    return Item(forms, (own(name),))


TOOL = SddContextCheck()
