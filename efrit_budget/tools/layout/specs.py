"""Lay out documents and changes: a line, an excerpt or the whole."""

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
"""Bytes of a document from which its title and its size in tokens are told."""
EXCERPT = 500
TITLE = 80
CUT = " […]"
MARKS = re.compile(r"^(#\+title:|[#=*.\s-]+)\s*", re.IGNORECASE)
OPTIONS = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
"""A front matter, which is about the document."""


@dataclass(frozen=True)
class Teller:
    """Lays out the documents of one call."""

    detail: Detail
    context: ToolContext

    def read(self, document: Document) -> str:
        """Return the text of a document."""
        return text_of(self.context.project, document, self.context.cancellation)

    def line(self, document: Document) -> str:
        """Return path, size and title of a document."""
        stage = "" if document.stage is None else f"{document.stage}: "
        head = self._head(document)
        return f"{stage}{document.name} ({self._size([document])}){_title(head)}"

    def item(self, thing: Document | ChangeFolder) -> Item:
        """Return a document or change in its renderings."""
        return self.change(thing) if isinstance(thing, ChangeFolder) else self.document(thing)

    def document(self, document: Document) -> Item:
        """Return a document in its renderings, from text to path."""
        line = self.line(document)
        return self._item(
            line,
            document.name,
            lambda: excerpt(self._head(document)),
            lambda: quote(self.read(document).rstrip("\n")),
        )

    def change(self, change: ChangeFolder, told: str = "") -> Item:
        """Return a change in its renderings, from texts to name."""
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
        """Return a document's path and text."""
        return own(document.name, self.read(document).rstrip("\n"))

    def _head(self, document: Document) -> str:
        context = self.context
        text = text_of(context.project, document, context.cancellation, LOOKED_AT)
        return OPTIONS.sub("", text)

    def _size(self, documents: Iterable[Document]) -> str:
        """Return the cost of the documents, estimated from their beginnings."""
        tokens = 0
        for document in documents:
            head = self._head(document)
            size = len(head.encode())
            tokens += self.context.cost(head) * max(size, document.size) // max(1, size)
        return f"~{counted(tokens, 'token')}"


def section(title: str, things: Iterable[Document | ChangeFolder], teller: Teller) -> Section:
    """Return a section of documents or changes."""
    things = list(things)
    return Section(title, [teller.item(one) for one in things], list(map(fact, things)))


def fact(thing: Document | ChangeFolder) -> dict[str, Json]:
    """Return a document or change for programs."""
    if isinstance(thing, ChangeFolder):
        return {"path": thing.name, "documents": [one.name for one in thing.documents]}
    facts: dict[str, Json] = {"path": thing.name, "bytes": thing.size}
    return facts if thing.stage is None else {**facts, "stage": thing.stage}


def left_out(found: Specification) -> str:
    """Return the line on files that were not read."""
    if not found.left_out:
        return ""
    return own(f"Left out (secrets, outside or unreadable): {', '.join(found.left_out)}") + "\n"


def _title(head: str) -> str:
    """Return the first meaningful line behind a blank, or nothing."""
    bare = (MARKS.sub("", line).strip() for line in head.splitlines())
    found = next((f" {line}" for line in bare if line), "")
    return found if len(found) <= TITLE + 1 else f"{found[: TITLE + 1]}…"


def excerpt(text: str, most: int = EXCERPT) -> str:
    """Return the beginning of a text behind its title."""
    lines = text.strip().split("\n")
    opening = (
        "\n".join(lines[1:]).strip() if len(lines) > 1 and MARKS.match(lines[0]) else text.strip()
    )
    if len(opening) <= most:
        return opening or text.strip()[:most]
    end = max(opening.rfind("\n", most // 2, most), opening.rfind(" ", most // 2, most))
    return f"{opening[: end if end > 0 else most].rstrip()}{CUT}"
