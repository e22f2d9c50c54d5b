"""How documents and changes are told: a line, an excerpt, or the whole of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from efrit_budget.errors import Json
from efrit_budget.memory.wording import Detail
from efrit_budget.project.documents import Change, Document, Specification, text_of
from efrit_budget.results.ladder import Item
from efrit_budget.results.marks import own, quote
from efrit_budget.results.sections import Section
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
    """Tells of documents as one call has it."""

    detail: Detail
    context: ToolContext

    def read(self, document: Document) -> str:
        """The text of a document."""
        return text_of(self.context.project, document, self.context.cancellation)

    def line(self, document: Document) -> str:
        """Its path, its size and its title."""
        stage = "" if document.stage is None else f"{document.stage}: "
        head = self._head(document)
        return f"{stage}{document.name} ({self._size([document])}){_titled(head)}"

    def item(self, thing: Document | Change) -> Item:
        """A document or a change, from its text down to its path."""
        return self.change(thing) if isinstance(thing, Change) else self.document(thing)

    def document(self, document: Document) -> Item:
        """A document, from its text down to its path."""
        line = self.line(document)
        return self._item(
            line,
            document.name,
            lambda: excerpt(self._head(document)),
            lambda: quote(self.read(document).rstrip("\n")),
        )

    def change(self, change: Change, told: str = "") -> Item:
        """A change, from the texts of its documents down to its name; `told` ends its line."""
        first = self._head(change.documents[0])
        files = counted(len(change.documents), "document")
        size = self._size(change.documents)
        line = f"{change.name} ({files}, {size}){_titled(first)}{told}"
        return self._item(line, change.name, lambda: excerpt(first), lambda: self._whole(change))

    def _item(
        self, line: str, name: str, short: Callable[[], str], whole: Callable[[], str]
    ) -> Item:
        if self.detail == "summary":
            return Item((own(line),), (own(name),))
        shorter = (own(line, short()), own(line))
        if self.detail == "standard":
            return Item(shorter, (own(name),))
        return Item((f"{own(line)}\n{whole()}", *shorter), (own(name),))

    def _whole(self, change: Change) -> str:
        return "\n".join(self.with_text(document) for document in change.documents)

    def with_text(self, document: Document) -> str:
        """A document's path and its whole text."""
        return own(document.name, self.read(document).rstrip("\n"))

    def _head(self, document: Document) -> str:
        context = self.context
        text = text_of(context.project, document, context.cancellation, LOOKED_AT)
        return OPTIONS.sub("", text)

    def _size(self, documents: Iterable[Document]) -> str:
        """What the documents cost, judged by their beginnings."""
        tokens = 0
        for document in documents:
            head = self._head(document)
            size = len(head.encode())
            tokens += self.context.cost(head) * max(size, document.size) // max(1, size)
        return f"~{counted(tokens, 'token')}"


def section(title: str, things: Iterable[Document | Change], teller: Teller) -> Section:
    """A section of documents or changes."""
    things = list(things)
    return Section(title, [teller.item(one) for one in things], list(map(fact, things)))


def fact(thing: Document | Change) -> dict[str, Json]:
    """What programs are told of a document or a change."""
    if isinstance(thing, Change):
        return {"path": thing.name, "documents": [one.name for one in thing.documents]}
    facts: dict[str, Json] = {"path": thing.name, "bytes": thing.size}
    return facts if thing.stage is None else {**facts, "stage": thing.stage}


def left_out(found: Specification) -> str:
    """The line on files that are there and were not read."""
    if not found.left_out:
        return ""
    return own(f"Left out (secrets, outside or unreadable): {', '.join(found.left_out)}") + "\n"


def _titled(head: str) -> str:
    title = _title(head)
    return f" {title}" if title else ""


def _title(head: str) -> str:
    """The first line that says something."""
    bare = (MARKS.sub("", line).strip() for line in head.splitlines())
    found = next(filter(None, bare), "")
    return found if len(found) <= TITLE else f"{found[:TITLE]}…"


def excerpt(text: str, most: int = EXCERPT) -> str:
    """The beginning of a text behind its title, cut between lines or words."""
    lines = text.strip().split("\n")
    opening = "\n".join(lines[1:]).strip() if _is_heading(lines) else text.strip()
    if len(opening) <= most:
        return opening or text.strip()[:most]
    cut = max(opening.rfind("\n", most // 2, most), opening.rfind(" ", most // 2, most))
    return f"{opening[: cut if cut > 0 else most].rstrip()}{CUT}"


def _is_heading(lines: Sequence[str]) -> bool:
    return len(lines) > 1 and MARKS.match(lines[0]) is not None
