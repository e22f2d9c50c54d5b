"""Lay out documents and change folders: one line, with an excerpt, or with the whole text."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from efrit_budget.errors import Json
from efrit_budget.memory.wording import Detail
from efrit_budget.project.documents import ChangeFolder, Document, Specification, text_of
from efrit_budget.results.marks import own, quote
from efrit_budget.results.packer import Item, Section
from efrit_budget.tools.base import ToolContext
from efrit_budget.tools.sizes import counted

LOOKED_AT = 4096
"""The first bytes of a document, from which its title and tokens are estimated."""
EXCERPT = 500
TITLE = 80
CUT = " […]"
MARKS = re.compile(r"^(#\+title:|[#=*.\s-]+)\s*", re.IGNORECASE)
OPTIONS = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
"""The front matter of a document, between lines of three dashes."""


@dataclass(frozen=True)
class Teller:
    """Lays out the documents of one tool call at one detail level."""

    detail: Detail
    context: ToolContext

    def read(self, document: Document) -> str:
        """Return the text of a document."""
        return text_of(self.context.project, document, self.context.cancellation)

    def line(self, document: Document) -> str:
        """Return the stage, path, tokens and title of a document on one line."""
        stage = "" if document.stage is None else f"{document.stage}: "
        head = self._head(document)
        return f"{stage}{document.name} ({self._size([document])}){_title(head)}"

    def item(self, thing: Document | ChangeFolder) -> Item:
        """Return a document or change folder as an item in several forms, longest first."""
        return self.change(thing) if isinstance(thing, ChangeFolder) else self.document(thing)

    def document(self, document: Document) -> Item:
        """Return a document as an item: with its text, with an excerpt, its line, its path."""
        line = self.line(document)
        return self._item(
            line,
            document.name,
            lambda: excerpt(self._head(document)),
            lambda: quote(self.read(document).rstrip("\n")),
        )

    def change(self, change: ChangeFolder, told: str = "") -> Item:
        """Return a change folder as an item in several forms; `told` ends its line."""
        first = self._head(change.documents[0])
        files = counted(len(change.documents), "document")
        size = self._size(change.documents)
        line = f"{change.name} ({files}, {size}){_title(first)}{told}"
        texts = map(self.with_text, change.documents)
        return self._item(line, change.name, lambda: excerpt(first), lambda: "\n".join(texts))

    def _item(
        self, line: str, name: str, short: Callable[[], str], whole: Callable[[], str]
    ) -> Item:
        if self.detail == "summary":
            return Item((own(line),), (own(name),))
        shorter = (own(line, short()), own(line))
        if self.detail == "standard":
            return Item(shorter, (own(name),))
        return Item((f"{own(line)}\n{whole()}", *shorter), (own(name),))

    def with_text(self, document: Document) -> str:
        """Return a document's path and, below it, its text."""
        return own(document.name, self.read(document).rstrip("\n"))

    def _head(self, document: Document) -> str:
        context = self.context
        text = text_of(context.project, document, context.cancellation, LOOKED_AT)
        return OPTIONS.sub("", text)

    def _size(self, documents: Iterable[Document]) -> str:
        """Return the tokens of the documents as text, estimated from their beginnings."""
        tokens = 0
        for document in documents:
            head = self._head(document)
            size = len(head.encode())
            tokens += self.context.cost(head) * max(size, document.size) // max(1, size)
        return f"~{counted(tokens, 'token')}"


def section(title: str, things: Iterable[Document | ChangeFolder], teller: Teller) -> Section:
    """Return a section with the items of documents or change folders below a title."""
    things = list(things)
    return Section(title, [teller.item(one) for one in things], list(map(fact, things)))


def fact(thing: Document | ChangeFolder) -> dict[str, Json]:
    """Return a document or change folder as data for programs."""
    if isinstance(thing, ChangeFolder):
        return {"path": thing.name, "documents": [one.name for one in thing.documents]}
    facts: dict[str, Json] = {"path": thing.name, "bytes": thing.size}
    return facts if thing.stage is None else {**facts, "stage": thing.stage}


def left_out(found: Specification) -> str:
    """Return the line on paths that were not read, or nothing if there are none."""
    if not found.left_out:
        return ""
    return own(f"Left out (secrets, outside or unreadable): {', '.join(found.left_out)}") + "\n"


def _title(head: str) -> str:
    """Return a blank and the title in `head`, its first line with words; or nothing."""
    bare = (MARKS.sub("", line).strip() for line in head.splitlines())
    found = next((f" {line}" for line in bare if line), "")
    return found if len(found) <= TITLE + 1 else f"{found[: TITLE + 1]}…"


def excerpt(text: str, most: int = EXCERPT) -> str:
    """Return the first `most` characters of a text behind its title."""
    lines = text.strip().split("\n")
    opening = (
        "\n".join(lines[1:]).strip() if len(lines) > 1 and MARKS.match(lines[0]) else text.strip()
    )
    if len(opening) <= most:
        return opening or text.strip()[:most]
    end = max(opening.rfind("\n", most // 2, most), opening.rfind(" ", most // 2, most))
    return f"{opening[: end if end > 0 else most].rstrip()}{CUT}"
