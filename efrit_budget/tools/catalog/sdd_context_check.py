"""What a change should know of: documents, earlier changes, memory, conventions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from efrit_budget.errors import Json
from efrit_budget.memory.observation import Filters, Observation
from efrit_budget.memory.packs import NEWLINES, index_of, name_of
from efrit_budget.memory.wording import FINDINGS, Detail
from efrit_budget.project.documents import Change, Document, Specification, specification
from efrit_budget.results.ladder import Item
from efrit_budget.results.marks import own
from efrit_budget.results.sections import Section
from efrit_budget.tools.base import Arguments, Hint, Outcome, Policy, ToolContext
from efrit_budget.tools.fitted import Found, fitted
from efrit_budget.tools.mentions import lines_with, mentioned, words_of
from efrit_budget.tools.sizes import counted
from efrit_budget.tools.specified import CUT, EXCERPT, Teller, fact, left_out, section

EXPLORE = "explore"
NO_WORD = "No word of four letters to look for in documents and changes."


@dataclass(frozen=True)
class Place:
    """A section up to the limit, and how much it would have without one."""

    section: Section
    total: int


class SddContextCheckArguments(Arguments):
    """The arguments of `sdd_context_check`."""

    change_description: Annotated[str, Field(min_length=1)]
    detail_level: Detail = "standard"
    project: str | None = None
    scope: SkipJsonSchema[str | None] = None
    limit: Annotated[int, Field(ge=1, le=100, description="In each section")] = 10


class SddContextCheck:
    """Counts which of the description's words stand where; what matters is for others to say."""

    name: ClassVar[str] = "sdd_context_check"
    description: ClassVar[str] = (
        "Before a change: documents, earlier changes and excerpts with words of its description, "
        "memory of type explore, convention files."
    )
    arguments: ClassVar[type[Arguments]] = SddContextCheckArguments
    policy: ClassVar[Policy] = Policy.ALLOW
    has_effects: ClassVar[bool] = False
    hint: ClassVar[Hint | None] = Hint("findings", tokens_each=60, parameter="limit")

    def run(self, arguments: SddContextCheckArguments, context: ToolContext) -> Outcome:
        """Look everywhere, and report."""
        words = words_of(arguments.change_description)
        found = specification(context.project, context.rg, context.cancellation)
        places = _Scan(arguments, context, found, words).places()
        none = [place.section.title or "" for place in places if not place.total]
        unasked = "" if words else own(NO_WORD) + "\n"
        lead = f"{own('# Context check')}\n{unasked}{_none(none)}{left_out(found)}"
        total = sum(place.total for place in places)
        answer = Found(lead, [place.section for place in places], "findings", total, FINDINGS)
        return fitted(answer, arguments.max_tokens, context)

    def compress(self, arguments: SddContextCheckArguments, outcome: Outcome) -> str:
        """How much was found, and the names of it."""
        facts = outcome.whole.item_data
        names = ", ".join(str(one.get("path") or f"#{one['id']}") for one in facts)
        asked = arguments.change_description[:100]
        return f"Checked {asked!r}: {counted(len(facts), 'finding')}: {names}"[:500]


def _none(titles: Sequence[str]) -> str:
    names = [title.removeprefix("## ").lower() for title in titles]
    return own(f"None: {', '.join(names)}") + "\n" if names else ""


@dataclass(frozen=True)
class _Scan:
    """Looks for the words of one description."""

    arguments: SddContextCheckArguments
    context: ToolContext
    found: Specification
    words: tuple[str, ...]

    def places(self) -> list[Place]:
        """What is found, place by place."""
        texts = {one: self._teller.read(one) for one in self.found.documents}
        return [
            self._listed("## Existing documents", self.found.documents, self._lines),
            self._changes(),
            self._memory(),
            self._listed("## Conventions", self.found.conventions, self._teller),
            *([] if self.arguments.detail_level == "summary" else [self._excerpts(texts)]),
        ]

    @property
    def _teller(self) -> Teller:
        return Teller(self.arguments.detail_level, self.context)

    @property
    def _lines(self) -> Teller:
        return Teller("summary", self.context)

    def _listed(self, title: str, documents: Sequence[Document], teller: Teller) -> Place:
        """Documents, those of stages first."""
        stages_first = sorted(documents, key=lambda one: one.stage is None)
        shown = stages_first[: self.arguments.limit]
        return Place(section(title, shown, teller), len(documents))

    def _changes(self) -> Place:
        """The changes that hold most of the words first."""
        held = {change: self._held(change) for change in self.found.changes}
        those = sorted(filter(held.get, held), key=lambda change: -len(held[change]))
        shown = those[: self.arguments.limit]
        items = [self._teller.change(one, f" [{', '.join(held[one])}]") for one in shown]
        facts = [{**fact(one), "words": list[Json](held[one])} for one in shown]
        return Place(Section("## Earlier changes with its words", items, facts), len(those))

    def _held(self, change: Change) -> list[str]:
        texts = [self._teller.read(document) for document in change.documents]
        return mentioned(self.words, "\n".join([change.name, *texts]))

    def _memory(self) -> Place:
        """What was explored before, as memory ranks it; all of it where there is no word."""
        given = self.arguments
        filters = Filters(given.project or None, given.scope or None, kind=EXPLORE)
        found = self.context.memory.search(given.change_description, filters, given.limit)
        if not found.total and not self.words:
            found = self.context.memory.search("", filters, given.limit)
        memories = [each.observation for each in found.candidates]
        own = self.context.origin.project
        items = [_remembered(one, own, given.detail_level) for one in memories]
        facts = [index_of(one) for one in memories]
        return Place(Section("## Memory of type explore", items, facts), found.total)

    def _excerpts(self, texts: Mapping[Document, str]) -> Place:
        """Where the words stand in the documents, those that hold most of them first."""
        held = {document: mentioned(self.words, text) for document, text in texts.items()}
        those = sorted(filter(held.get, held), key=lambda document: -len(held[document]))
        shown = those[: self.arguments.limit]
        items = [self._excerpt(one, held[one], texts[one]) for one in shown]
        facts = [{**fact(one), "words": list[Json](held[one])} for one in shown]
        return Place(Section("## Excerpts", items, facts), len(those))

    def _excerpt(self, document: Document, held: Sequence[str], text: str) -> Item:
        line = f"{document.name} [{', '.join(held)}]"
        shorter = (own(line, lines_with(self.words, text)), own(line))
        if self.arguments.detail_level == "full":
            return Item((own(line, text.rstrip()), *shorter), (own(document.name),))
        return Item(shorter, (own(document.name),))


def _remembered(memory: Observation, own_project: str, detail: Detail) -> Item:
    """A memory, from its content down to its number; another project's says so."""
    elsewhere = f" (project {memory.project})" if memory.project not in ("", own_project) else ""
    line, name = f"#{memory.id} {name_of(memory)}{elsewhere}", f"#{memory.id}"
    if detail == "summary":
        return Item((own(line),), (own(name),))
    content = memory.content.strip(NEWLINES)
    whole = own(line, content)
    short = whole if len(content) <= EXCERPT else own(line, f"{content[:EXCERPT].rstrip()}{CUT}")
    forms = (whole, short, own(line)) if detail == "full" else (short, own(line))
    return Item(forms, (own(name),))


TOOL = SddContextCheck()
