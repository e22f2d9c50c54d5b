"""The tool `sdd_context_check`: finds documents, changes and memory related to a change."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, TypeVar

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
from efrit_budget.tools.sizes import counted

EXPLORE = "explore"
NO_WORD = "No word to look for in documents and changes."
MOST_WORDS = 50
MOST_LINES = 5
MOST_LINE = 200
WORD = re.compile(r"[^\W_]{2,}")
LONG = 3
"""The least letters of a word in lower case that is searched for."""
GRAMMAR = frozenset(
    (
        *(
            "the",
            "and",
            "for",
            "are",
            "but",
            "not",
            "you",
            "all",
            "any",
            "can",
            "had",
            "has",
            "her",
        ),
        *(
            "was",
            "one",
            "our",
            "out",
            "its",
            "who",
            "how",
            "why",
            "him",
            "his",
            "she",
            "did",
            "may",
        ),
    )
)
"""Short words that stand in every text, and are not searched for."""

Thing = TypeVar("Thing", Document, ChangeFolder)
FoundSection = tuple[Section, int]
"""A section cut to a limit, and the number of findings without the limit."""


class SddContextCheckArguments(Arguments):
    """The arguments of `sdd_context_check`."""

    change_description: Annotated[str, Field(min_length=1)]
    detail_level: Detail = "standard"
    project: str | None = None
    scope: SkipJsonSchema[str | None] = None
    limit: Annotated[int, Field(ge=1, le=100, description="In each section")] = 10


class SddContextCheck(Tool):
    """Searches the specification and memory for the words of a change's description."""

    name = "sdd_context_check"
    description = (
        "Before a change: documents, earlier changes and excerpts with words of its description, "
        "memory of type explore, convention files."
    )
    arguments = SddContextCheckArguments
    hint = Hint("findings", tokens_each=60, parameter="limit")

    def run(self, arguments: SddContextCheckArguments, context: ToolContext) -> Outcome:
        """Return the findings in documents, changes, memory and conventions, by section."""
        words = _words_of(arguments.change_description)
        found = specification(context.project, context.find_rg(), context.cancellation)
        places = _Scan(arguments, context, found, words).places()
        none = [place.title or "" for place, total in places if not total]
        unasked = "" if words else own(NO_WORD) + "\n"
        titles = ", ".join(title.removeprefix("## ").lower() for title in none)
        missing = own(f"None: {titles}") + "\n" if none else ""
        lead = f"{own('# Context check')}\n{unasked}{missing}{left_out(found)}"
        total = sum(total for _, total in places)
        answer = Found(lead, [place for place, _ in places], "findings", total, FINDINGS)
        return fitted(answer, arguments.max_tokens, context)

    def compress(self, arguments: SddContextCheckArguments, outcome: Outcome) -> str:
        """Return the number of findings, and their paths or ids."""
        facts = outcome.whole.item_data
        names = ", ".join(str(one.get("path") or f"#{one['id']}") for one in facts)
        description = arguments.change_description[:100]
        return f"Checked {description!r}: {counted(len(facts), 'finding')}: {names}"[:500]


@dataclass(frozen=True)
class _Scan:
    """Searches the specification and memory for the words of one description."""

    arguments: SddContextCheckArguments
    context: ToolContext
    found: Specification
    words: tuple[str, ...]

    def places(self) -> list[FoundSection]:
        """Return the sections with findings, one for each place that is searched."""
        read, lines = self._teller.read, Teller("summary", self.context)
        texts = {one: read(one) for one in self.found.documents}
        changes = {
            one: "\n".join([one.name, *map(read, one.documents)]) for one in self.found.changes
        }
        found = [
            self._documents("## Existing documents", self.found.documents, lines),
            self._with_words("## Earlier changes with its words", changes, self._change),
            self._memory(),
            self._documents("## Conventions", self.found.conventions, self._teller),
        ]
        if self.arguments.detail_level == "summary":
            return found
        item = partial(self._excerpt, texts)
        return [*found, self._with_words("## Excerpts", texts, item)]

    @property
    def _teller(self) -> Teller:
        return Teller(self.arguments.detail_level, self.context)

    def _documents(self, title: str, documents: Sequence[Document], teller: Teller) -> FoundSection:
        """Return a section of documents, those of a stage first."""
        stages_first = sorted(documents, key=lambda one: one.stage is None)
        visible = stages_first[: self.arguments.limit]
        return section(title, visible, teller), len(documents)

    def _with_words(
        self, title: str, texts: Mapping[Thing, str], item: Callable[[Thing, list[str]], Item]
    ) -> FoundSection:
        """Return a section of the things with words of the description, most words first."""
        held = {one: _mentioned(self.words, text) for one, text in texts.items()}
        those = sorted(filter(held.get, held), key=lambda one: -len(held[one]))
        visible = those[: self.arguments.limit]
        facts = [{**fact(one), "words": list[Json](held[one])} for one in visible]
        items = [item(one, held[one]) for one in visible]
        return Section(title, items, facts), len(those)

    def _change(self, change: ChangeFolder, held: Sequence[str]) -> Item:
        return self._teller.change(change, f" [{', '.join(held)}]")

    def _memory(self) -> FoundSection:
        """Return a section of the observations of type explore that match, best first."""
        arguments = self.arguments
        filters = Filters(arguments.project or None, arguments.scope or None, kind=EXPLORE)
        found = self.context.memory.search(arguments.change_description, filters, arguments.limit)
        if not found.total and not self.words:
            found = self.context.memory.search("", filters, arguments.limit)
        memories = [each.observation for each in found.candidates]
        own = self.context.origin.project
        items = [_observation_item(one, own, arguments.detail_level) for one in memories]
        facts = [index_of(one) for one in memories]
        return Section("## Memory of type explore", items, facts), found.total

    def _excerpt(
        self, texts: Mapping[Document, str], document: Document, held: Sequence[str]
    ) -> Item:
        line, text = f"{document.name} [{', '.join(held)}]", texts[document]
        shorter = (own(line, _lines_with(self.words, text)), own(line))
        if self.arguments.detail_level == "full":
            return Item((own(line, text.rstrip()), *shorter), (own(document.name),))
        return Item(shorter, (own(document.name),))


def _observation_item(memory: Observation, own_project: str, detail: Detail) -> Item:
    """Return an observation as an item, naming its project unless that is `own_project`."""
    project_note = f" (project {memory.project})" if memory.project not in ("", own_project) else ""
    line, name = f"#{memory.id} {name_of(memory)}{project_note}", f"#{memory.id}"
    if detail == "summary":
        return Item((own(line),), (own(name),))
    content = memory.content.strip(NEWLINES)
    whole = own(line, content)
    short = whole if len(content) <= EXCERPT else own(line, f"{content[:EXCERPT].rstrip()}{CUT}")
    forms = (whole, short, own(line)) if detail == "full" else (short, own(line))
    return Item(forms, (own(name),))


# Words


def _words_of(description: str) -> tuple[str, ...]:
    """Return the distinct words to search for: long, an acronym, or not only of Latin letters.

    The commonest short words are not among them, unless they are in capitals.
    """
    words = [
        word.casefold()
        for word in WORD.findall(description)
        if (len(word) >= LONG and word.casefold() not in GRAMMAR)
        or word.isupper()
        or not word.isascii()
        or not word.isalpha()
    ]
    return tuple(dict.fromkeys(words))[:MOST_WORDS]


def _mentioned(words: Sequence[str], text: str) -> list[str]:
    """Return those of the words with which a word of the text begins."""
    text_words = set(WORD.findall(text.casefold()))
    return [word for word in words if any(one.startswith(word) for one in text_words)]


def _lines_with(words: Sequence[str], text: str) -> str:
    """Return the lines that hold the most of the words, numbered, in the order of the text."""
    lines = dict(enumerate(map(str.strip, text.split("\n")), 1))
    counts = {number: len(_mentioned(words, line)) for number, line in lines.items()}
    most = sorted(filter(counts.__getitem__, counts), key=lambda number: -counts[number])
    return "\n".join(
        f"{number}: {lines[number][:MOST_LINE]}{'…' if len(lines[number]) > MOST_LINE else ''}"
        for number in sorted(most[:MOST_LINES])
    )


TOOL = SddContextCheck()
