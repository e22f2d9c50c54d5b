"""The body of a result: its text and the offsets of items and headers."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from efrit_budget.errors import Json, JsonObject

Member = tuple[str, Json] | tuple[str]
"""The text of an item and its data; or only a text, which stands between items."""

COLUMN = ", column "
"""Stands between the number of a long line and the column at which its shown part begins."""
UNSAVED = " (unsaved buffer)"
STALE = " (unsaved buffer; the file on disk has changed since)"
"""The notes behind the name of a file of which the unsaved buffer was read."""


LIKE_LINE = re.compile(rf"\d+([:-]|{COLUMN})")
"""Matches the beginning of a numbered line; a file name that it matches gets `HERE` in front."""
HERE = "./"


def marked(name: str, *, unsaved: bool, stale: bool) -> str:
    """Return a file name with a note if its text is an unsaved buffer."""
    return name + (STALE if stale else UNSAVED if unsaved else "")


def unmarked(name: str) -> str:
    """Return a file name without the note that `marked` adds, and without `HERE` in front."""
    return name.removesuffix(STALE).removesuffix(UNSAVED).removeprefix(HERE)


@dataclass(frozen=True)
class Source:
    """A file that a result was made from, with its time and size at that moment."""

    path: str
    modified_ns: int
    size: int

    def changed(self, root: Path) -> bool:
        """Return whether the file has changed since then or is gone."""
        try:
            found = (root / self.path).stat()
        except OSError:
            return True
        return (found.st_mtime_ns, found.st_size) != (self.modified_ns, self.size)


@dataclass(frozen=True)
class Body:
    """The text of a result and the offsets of its items and headers.

    A header is a line above the items that belong to it; a page that begins below a header
    repeats it. If a body has no items, its lines are counted instead. `noun` names what is
    counted, and `data` is for programs.
    """

    text: str
    noun: str = "lines"
    items: tuple[int, ...] = ()
    headers: tuple[int, ...] = ()
    data: JsonObject = field(default_factory=dict)
    item_data: tuple[Any, ...] = ()
    """The data of each item for programs; the data of a page lists that of its items as `noun`."""
    tree: bool = False
    """Whether items are names and headers the folders that contain them, so that the data of an
    item is its path; an item that begins with a quote is a whole path."""
    numbered: bool = False
    """Whether items are numbered lines and headers the paths of their files, so that path, number
    and text are the data of an item; a long line has a column behind its number."""
    total: int | None = None
    """The number of all items, if more were counted than stored."""
    hint: str = ""
    """The words behind "Showing 3 of 10" on the last page, if not all items are stored: a noun,
    and how to get the rest."""
    most: int | None = None
    """The most items that a page shows; None for no limit."""
    opening: int = 0
    """The offset where the first page ends at the latest; 0 for no such limit."""
    sources: tuple[Source, ...] = ()
    more: JsonObject | None = None
    """The data with which the tool continues after this text; None if nothing follows."""
    position: str = ""
    """The part of the whole that this text is, if more follows: "Lines 1-200 of a.el."."""
    content: tuple[JsonObject, ...] = ()
    """Content blocks, such as an image, that are sent with the first page of the text."""
    content_tokens: int = 0
    """The tokens of the content blocks, computed from their size."""

    def count(self, start: int, end: int) -> int:
        """Return how many items (or lines) begin in a range of the text."""
        if self.items:
            return bisect_left(self.items, end) - bisect_left(self.items, start)
        if start >= min(end, len(self.text)) or self.data.get(self.noun) == []:
            return 0
        return (start == 0) + self.text.count("\n", max(start - 1, 0), end - 1)

    @cached_property
    def whole_count(self) -> int:
        """The number of all items (or lines), those counted but not stored included."""
        return self.total if self.total is not None else self.count(0, len(self.text))

    def data_of(self, start: int, end: int) -> JsonObject:
        """Return the data for programs, with that of the items in a range of the text."""
        if not (self.item_data or self.tree or self.numbered):
            return dict(self.data)
        first, last = bisect_left(self.items, start), bisect_left(self.items, end)
        return {**self.data, self.noun: self._facts(first, last)}

    def _facts(self, first: int, last: int) -> list[Json]:
        if self.tree:
            return [_join_path(header, line) for header, line in self._lines(first, last)]
        if self.numbered:
            return [_line_data(header, line) for header, line in self._lines(first, last)]
        return list(self.item_data[first:last])

    def _lines(self, first: int, last: int) -> Iterator[tuple[str, str]]:
        """Yield each item from index `first` to before `last` as its header and its line."""
        heads = bisect_right(self.headers, self.items[first]) - 1 if first < last else -1
        header = self._line(self.headers[heads]) if heads >= 0 else ""
        for item in self.items[first:last]:
            while heads + 1 < len(self.headers) and self.headers[heads + 1] < item:
                heads += 1
                header = self._line(self.headers[heads])
            yield header, self._line(item)

    def _line(self, offset: int) -> str:
        end = self.text.find("\n", offset)
        return self.text[offset:] if end < 0 else self.text[offset:end]


def _join_path(folder: str, line: str) -> Json:
    """Return the path of an item of a tree: of a name in a folder, or a quoted path as it is."""
    name = line.lstrip(" ")
    return name if name.startswith('"') else folder + name


def _line_data(header: str, line: str) -> Json:
    """Return path, line number, column if any, and text of a numbered line."""
    place, _, text = line.partition(":")
    number, _, column = place.partition(COLUMN)
    fact: JsonObject = {"path": unmarked(header), "line": int(number)}
    if column:
        fact["column"] = int(column)
    return fact | {"text": text}


def of_items(
    noun: str, groups: Iterable[tuple[str | None, Sequence[Member]]], **data: Json
) -> Body:
    """Return a body of items in groups, each group under its header.

    An empty group has no header, and neither has a group whose header is None.
    """
    parts: list[str] = []
    items: list[int] = []
    headers: list[int] = []
    facts: list[Json] = []
    offset = 0
    for header, members in groups:
        if header is not None and members:
            headers.append(offset)
            parts.append(header + "\n")
            offset += len(parts[-1])
        for text, *fact in members:
            items += [offset] * len(fact)
            facts += fact
            parts.append(text + "\n")
            offset += len(parts[-1])
    if not items:
        data[noun] = []
    return Body(
        "".join(parts), noun, tuple(items), tuple(headers), data=data, item_data=tuple(facts)
    )


def preceded(text: str, body: Body) -> Body:
    """Return the body with a text put before it that belongs to no item."""
    shift = len(text)
    items = tuple(shift + item for item in body.items)
    headers = tuple(shift + header for header in body.headers)
    return replace(body, text=text + body.text, items=items, headers=headers)
