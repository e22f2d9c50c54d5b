"""Stretches of numbered lines: how many of a text's lines fit an allowance, and what follows."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from efrit_budget.characters import LINE_BREAK, one_line_each
from efrit_budget.project.coding import LONE, REPLACEMENT
from efrit_budget.project.reading import Text
from efrit_budget.results.body import Body
from efrit_budget.results.pages import Cost, page

READ_FOR_A_TOKEN = 8
"""Characters read for each token there is room for; hardly any text needs more."""
LEAST_READ, MOST_READ = 4096, 4 * 1024 * 1024
SHRINK = 0.95
STANDS_FOR = {
    "␍": "a carriage return",
    "␀": "a NUL",
    "␛": "an escape",
    "␌": "a form feed",
    LINE_BREAK: "a line separator",
    REPLACEMENT: "bytes that are no character",
}


@dataclass(frozen=True)
class Spot:
    """Where a line begins, or goes on behind its first `column` characters.

    Lines are numbered from 1; where nobody has counted them, backwards from -1.
    """

    offset: int
    line: int
    column: int = 0


@dataclass(frozen=True)
class Until:
    """Where what was asked for ends: at an offset, and behind a line."""

    offset: int
    line: int | None = None


@dataclass(frozen=True)
class Stretch:
    """Lines that are shown together, under a header that is still to come."""

    first: Spot
    next: Spot | None
    """Where what follows begins; None at the end of what was asked for."""
    lines: tuple[str, ...]
    line_ends: str | None
    """LF, CRLF or mixed; None where no line ends."""

    @property
    def last_line(self) -> int:
        """The number of the last line that is shown, whole or in part."""
        return self.first.line + len(self.lines) - 1

    @property
    def columns(self) -> tuple[int, int] | None:
        """The columns shown of a line that is shown in part; whole lines may follow it."""
        if not self.first.column and not self.is_cut:
            return None
        return self.first.column + 1, self.first.column + len(self.lines[0])

    @property
    def is_cut(self) -> bool:
        """Whether its only line goes on behind it."""
        return self.next is not None and self.next.column > 0

    def labelled(self) -> list[str]:
        """The lines, each behind its number; one that goes on, behind number and column."""
        spot = self.first
        numbered = [f"{spot.line + at}\t{line}" for at, line in enumerate(self.lines)]
        if spot.column:
            numbered[0] = f"{spot.line}:{spot.column + 1}\t{self.lines[0]}"
        return numbered

    def signs(self) -> str:
        """What the signs mean that stand for something else; it may be that they stood there."""
        text = "\n".join(self.lines)
        told = [f"{sign} is {meaning}" for sign, meaning in STANDS_FOR.items() if sign in text]
        return f"{', '.join(told)}." if told else ""


def forward(text: Text, spot: Spot, until: Until, room: int, cost: Cost) -> Stretch:
    """The lines from a spot on; one that is too long for any page is cut by characters."""
    raw, reaches_end = _raw(text, spot, until, room)
    pieces, is_open = _pieces(raw, spot, until, reaches_end=reaches_end)
    if not pieces:
        return Stretch(spot, None, (), None)
    lines, line_ends = _lines(pieces, is_open=is_open)
    whole = Stretch(spot, None, lines, line_ends)
    fitting, characters = _fitting(whole, room, cost)
    if fitting == 0 or (is_open and not reaches_end):
        return _cut(text, whole, raw, characters if fitting == 0 else len(lines[0]))
    return _ended(text, whole, raw, sum(map(len, pieces[:fitting])) + fitting, until)


def backward(text: Text, end: Spot, count: int, room: int, cost: Cost) -> Stretch | None:
    """The last of so many lines before a spot; None where not even one of them fits.

    What is next is the spot itself from which to go backwards again.
    """
    start = text.start_of_last(count, end.offset)
    begin = max(start, _whole_units(text, end.offset - _most_read(text, room)))
    raw = text.part(begin, end.offset)
    pieces = raw.removesuffix("\n").split("\n")[begin > start :]
    kept = len(pieces)
    while kept:
        lines, line_ends = _lines(pieces[-kept:], is_open=not raw.endswith("\n"))
        stretch = Stretch(Spot(0, end.line - kept), None, lines, line_ends)
        spent = cost("\n".join(stretch.labelled()))
        if spent <= room:
            first = Spot(text.start_of_last(kept, end.offset), end.line - kept)
            return Stretch(first, first if first.offset > start else None, lines, line_ends)
        kept = min(kept - 1, int(kept * room / spent * SHRINK))
    return None


def _most_read(text: Text, room: int) -> int:
    return min(MOST_READ, max(LEAST_READ, room * READ_FOR_A_TOKEN)) * text.coding.width


def _whole_units(text: Text, offset: int) -> int:
    return offset - offset % text.coding.width


def _raw(text: Text, spot: Spot, until: Until, room: int) -> tuple[str, bool]:
    """As much as can fit, and whether it reaches the end of what was asked for."""
    end = min(until.offset, spot.offset + _most_read(text, room))
    return text.part(spot.offset, end), end >= until.offset


def _pieces(raw: str, spot: Spot, until: Until, *, reaches_end: bool) -> tuple[list[str], bool]:
    """The lines without their newlines, and whether the last one may go on."""
    pieces = raw.split("\n")
    is_open = pieces[-1] != "" and (len(pieces) == 1 or reaches_end)
    if not is_open:
        pieces.pop()
    if until.line is not None and len(pieces) > until.line - spot.line + 1:
        return pieces[: max(0, until.line - spot.line + 1)], False
    return pieces, is_open


def _lines(pieces: Sequence[str], *, is_open: bool) -> tuple[tuple[str, ...], str | None]:
    """The lines as they are shown, and how they end."""
    ending = pieces[:-1] if is_open else pieces
    returns = sum(piece.endswith("\r") for piece in ending)
    line_ends = "mixed" if returns else ("LF" if ending else None)
    if returns and returns == len(ending):
        line_ends = "CRLF"
        pieces = [*(piece[:-1] for piece in ending), *pieces[len(ending) :]]
    shown = one_line_each(LONE.sub(REPLACEMENT, "\n".join(pieces)))
    return tuple(shown.split("\n")), line_ends


def _fitting(stretch: Stretch, room: int, cost: Cost) -> tuple[int, int]:
    """How many lines fit, and how many characters of the first one if none does."""
    items, parts, offset = [], [], 0
    for label in stretch.labelled():
        items.append(offset)
        parts.append(label + "\n")
        offset += len(parts[-1])
    cut = page(Body("".join(parts), items=tuple(items)), 0, room, cost)
    behind_label = cut.end - (len(parts[0]) - 1 - len(stretch.lines[0]))
    if cut.end >= len(parts[0]) - 1:
        return max(1, bisect_right(items, cut.end) - (cut.end < offset)), 0
    return 0, max(1, behind_label)


def _cut(text: Text, whole: Stretch, raw: str, characters: int) -> Stretch:
    """The first line alone, up to a column of it."""
    spot = whole.first
    behind = spot.offset + len(text.coding.encoded(raw[:characters]))
    further = Spot(behind, spot.line, spot.column + characters)
    return Stretch(spot, further, (whole.lines[0][:characters],), None)


def _ended(text: Text, whole: Stretch, raw: str, characters: int, until: Until) -> Stretch:
    """The lines that fit, each whole."""
    spot = whole.first
    fitting = raw.count("\n", 0, characters - 1) + 1
    behind = spot.offset + len(text.coding.encoded(raw[:characters]))
    line = spot.line + fitting
    is_end = behind >= until.offset or (until.line is not None and line > until.line)
    further = None if is_end else Spot(behind, line)
    return Stretch(spot, further, whole.lines[:fitting], whole.line_ends)
