"""Lay out matches below their files with line numbers."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from efrit_budget.errors import Json
from efrit_budget.project.paths import shown_name
from efrit_budget.project.search.hits import Block
from efrit_budget.project.search.listing import grouped
from efrit_budget.results.body import COLUMN, Body, of_items, unmarked
from efrit_budget.results.trees import of_lines, of_tree

MOST_LINE = 300
BEFORE_MATCH = 80
"""The most characters shown of a line, and of these the most before the match."""
PLACE = re.compile(r"\d+:\d+:")
GAP = "--"

Header = str


def lines_alone(files: Sequence[tuple[Header, Block]], data: dict[str, Json]) -> Body:
    """Return the matching lines as a body, below the headers of their files."""
    if not files:
        return Body("", "matches", data={**data, "matches": []})
    text = b"\n".join(block.lines for _, block in files).decode("utf-8", "replace")
    text = text.replace("\r\n", "\n").removesuffix("\r")
    numbered = (line.partition(":") for line in text.split("\n"))
    found = [f"{number}:{rest.partition(':')[2]}" for number, _, rest in numbered]  # no columns
    if max(map(len, found)) > MOST_LINE:
        printed = zip(found, text.split("\n"), strict=True)
        found = [line if len(line) <= MOST_LINE else _match(whole).shown for line, whole in printed]
    lines: list[str] = []
    heads: list[int] = []
    rest = iter(found)
    for header, block in files:
        heads.append(len(lines))
        lines += (header, *islice(rest, block.matches))
    return replace(of_lines("matches", lines, heads, data), numbered=True)


@dataclass(frozen=True)
class Match:
    """A matching line, or the part of a long line around the match."""

    number: int
    line: str
    column: int | None
    """The column at which the match begins if `line` is only a part; else None."""

    @property
    def shown(self) -> str:
        """The line as displayed."""
        place = "" if self.column is None else f"{COLUMN}{self.column}"
        return f"{self.number}{place}:{self.line}"


def _match(printed: str) -> Match:
    """Return the match that rg printed as line number, byte column and text."""
    number, byte_column, line = printed.split(":", 2)
    if len(line) <= MOST_LINE:
        return Match(int(number), line, None)
    at = len(line.encode()[: int(byte_column) - 1].decode("utf-8", "ignore"))
    begin = max(0, min(at - BEFORE_MATCH, len(line) - MOST_LINE))
    end = begin + MOST_LINE
    excerpt = f"{'…' if begin else ''}{line[begin:end]}{'…' if end < len(line) else ''}"
    return Match(int(number), excerpt, at + 1)


def lines_in_context(files: Sequence[tuple[Header, Block]], data: dict[str, Json]) -> Body:
    """Return the matching lines with their context as a body, each match an item."""
    groups = [
        (header, [_item(header, place) for place in _places(block)]) for header, block in files
    ]
    return of_items("matches", groups, **data)


@dataclass
class _Place:
    """A match with its context."""

    match: Match
    before: list[str]
    after: list[str] = field(default_factory=list)


def _item(header: Header, place: _Place) -> tuple[str, Json]:
    match = place.match
    fact: dict[str, Json] = {"path": unmarked(header), "line": match.number}
    if match.column is not None:
        fact["column"] = match.column
    fact |= {"text": match.line, "before": place.before, "after": place.after}
    return "\n".join([*place.before, match.shown, *place.after]), fact


def _places(block: Block) -> list[_Place]:
    places: list[_Place] = []
    around: list[str] = []
    for line in block.lines.decode("utf-8", "replace").split("\n"):
        if PLACE.match(line) is None:
            bare = line.rstrip()
            around.append(bare if len(bare) <= MOST_LINE else f"{bare[:MOST_LINE]}…")
            continue
        before = _split_context(around, places[-1]) if places else around
        places.append(_Place(_match(line.rstrip()), before))
        around = []
    _split_context(around, places[-1])
    return places


def _split_context(around: list[str], place: _Place) -> list[str]:
    """Store the lines up to a gap as context after `place`; return the lines behind the gap."""
    gap = around.index(GAP) if GAP in around else len(around)
    place.after = around[:gap]
    return around[gap + 1 :]


def counts(files: Sequence[tuple[str, Block]], data: dict[str, Json]) -> Body:
    """Return the number of matches in each file as a body, with the files by folder."""
    numbers = {path: block.matches for path, block in files}
    groups: list[tuple[str | None, list[tuple[str, Json]]]] = []
    for folder, names in sorted(grouped(numbers).items()):
        items: list[tuple[str, Json]] = []
        for name in sorted(names):
            count = numbers[folder + name]
            fact: Json = {"path": shown_name(folder + name), "matches": count}
            items.append((f"{shown_name(name)}: {count:,}", fact))
        groups.append((shown_name(folder) if folder else None, items))
    return of_items("files", groups, **data)


def names(files: Sequence[tuple[str, Block]], data: dict[str, Json]) -> Body:
    """Return the files with matches as a body, by folder."""
    return of_tree("files", grouped(path for path, _ in files), shown_name, data)
