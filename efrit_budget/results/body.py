"""The body of a result: its text and the offsets of items and headers."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from efrit_budget.errors import Json, JsonObject

Member = tuple[str, Json] | tuple[str]
"""An item's text and the fact about it; a text alone stands between items, and is none."""

COLUMN = ", column "
"""Between the number of a long line and the column of what is shown of it."""
UNSAVED = " (unsaved buffer)"
STALE = " (unsaved buffer; the file on disk has changed since)"
"""Behind the name of a file that Emacs holds unsaved."""


LIKE_LINE = re.compile(rf"\d+([:-]|{COLUMN})")
"""How a numbered line begins; the name of a file that begins so stands behind `HERE`."""
HERE = "./"


def marked(name: str, *, unsaved: bool, stale: bool) -> str:
    """Return a file name with a note if its text is an unsaved buffer."""
    return name + (STALE if stale else UNSAVED if unsaved else "")


def unmarked(name: str) -> str:
    """Return a file name without that note."""
    return name.removesuffix(STALE).removesuffix(UNSAVED).removeprefix(HERE)


@dataclass(frozen=True)
class Source:
    """A file that a result was made from, as it was then."""

    path: str
    modified_ns: int
    size: int

    def changed(self, root: Path) -> bool:
        """Return whether the file has changed or is gone."""
        try:
            found = (root / self.path).stat()
        except OSError:
            return True
        return (found.st_mtime_ns, found.st_size) != (self.modified_ns, self.size)


@dataclass(frozen=True)
class Body:
    """The text of a result and the places of its parts.

    `items` are the offsets at which items begin and `headers` those of the lines that head the
    items after them; a page that begins between two items of a header repeats it. Without
    items, the lines are what is counted.
    """

    text: str
    noun: str = "lines"
    items: tuple[int, ...] = ()
    headers: tuple[int, ...] = ()
    data: JsonObject = field(default_factory=dict)
    item_data: tuple[Any, ...] = ()
    """Structured items under the noun, one for each of `items`; a page carries its own."""
    tree: bool = False
    """Whether items are names and headers the folders that hold them, so that the paths they
    make together are their data; an item that begins with a quote is a whole path."""
    numbered: bool = False
    """Whether items are lines behind their numbers and headers the paths of the files they are
    in, so that these are their data; behind a number in a long line stands its column too."""
    total: int | None = None
    """How many there are, where more were counted than stored."""
    hint: str = ""
    """What the last page says behind how many of how many it shows: their noun, and how to get
    the rest."""
    most: int | None = None
    """How many items a page shows at the most."""
    opening: int = 0
    """Where the first page ends at the latest, if anywhere."""
    sources: tuple[Source, ...] = ()
    more: JsonObject | None = None
    """What the tool that served it needs to go on behind it; None where nothing follows."""
    position: str = ""
    """Where in the whole it stands, where something follows: "Lines 1-200 of a.el."."""
    content: tuple[JsonObject, ...] = ()
    """The API's blocks that are shown beside the text's first page: an image."""
    content_tokens: int = 0
    """What those cost, by their size; no estimate."""

    def count(self, start: int, end: int) -> int:
        """Return how many items (or lines) begin in a range of the text."""
        if self.items:
            return bisect_left(self.items, end) - bisect_left(self.items, start)
        if start >= min(end, len(self.text)) or self.data.get(self.noun) == []:
            return 0
        return (start == 0) + self.text.count("\n", max(start - 1, 0), end - 1)

    @cached_property
    def whole_count(self) -> int:
        """The number of items (or lines)."""
        return self.total if self.total is not None else self.count(0, len(self.text))

    def data_of(self, start: int, end: int) -> JsonObject:
        """Return the data of a range of the text."""
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
        """Yield the items from `first` on, each with its header."""
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
    """Return the path of a name in a folder."""
    name = line.lstrip(" ")
    return name if name.startswith('"') else folder + name


def _line_data(header: str, line: str) -> Json:
    """Return a numbered line as data."""
    place, _, text = line.partition(":")
    number, _, column = place.partition(COLUMN)
    fact: JsonObject = {"path": unmarked(header), "line": int(number)}
    if column:
        fact["column"] = int(column)
    return fact | {"text": text}


def of_items(
    noun: str, groups: Iterable[tuple[str | None, Sequence[Member]]], **data: Json
) -> Body:
    """Return a body of grouped items, each group under its header.

    The header of a group without items heads nothing, and is left out.
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
    """Return the body behind lines that belong to no item."""
    shift = len(text)
    items = tuple(shift + item for item in body.items)
    headers = tuple(shift + header for header in body.headers)
    return replace(body, text=text + body.text, items=items, headers=headers)
