"""Numbered lines: how many fit an allowance, and where to continue."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from efrit_budget.characters import LINE_BREAK, one_line_each
from efrit_budget.project.text.coding import LONE, REPLACEMENT
from efrit_budget.project.text.reading import Text
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
    """The start of a line, or a column in it.

    Lines are numbered from 1; where nobody has counted them, backwards from -1.
    """

    offset: int
    line: int
    column: int = 0


@dataclass(frozen=True)
class Until:
    """The end of the requested range."""

    offset: int
    line: int | None = None


@dataclass(frozen=True)
class Stretch:
    """Lines that are shown together."""

    first: Spot
    next: Spot | None
    """Where what follows begins; None at the end of what was asked for."""
    lines: tuple[str, ...]
    line_ends: str | None
    """LF, CRLF or mixed; None where no line ends."""

    @property
    def last_line(self) -> int:
        """The number of the last line shown."""
        return self.first.line + len(self.lines) - 1

    @property
    def columns(self) -> tuple[int, int] | None:
        """The columns shown of a partial line, or None."""
        if not self.first.column and not self.is_cut:
            return None
        return self.first.column + 1, self.first.column + len(self.lines[0])

    @property
    def is_cut(self) -> bool:
        """Return whether its only line continues."""
        return self.next is not None and self.next.column > 0

    def labelled(self) -> list[str]:
        """Return the lines with their numbers."""
        spot = self.first
        numbered = [f"{spot.line + at}\t{line}" for at, line in enumerate(self.lines)]
        if spot.column:
            numbered[0] = f"{spot.line}:{spot.column + 1}\t{self.lines[0]}"
        return numbered

    def signs(self) -> str:
        """Return what the replacement signs stand for."""
        text = "\n".join(self.lines)
        meanings = [f"{sign} is {meaning}" for sign, meaning in STANDS_FOR.items() if sign in text]
        return f"{', '.join(meanings)}." if meanings else ""


def forward(text: Text, spot: Spot, until: Until, room: int, cost: Cost) -> Stretch:
    """Return the lines from a spot on; cut a line that fits no page."""
    end = min(until.offset, spot.offset + _most_read(text, room))
    raw, reaches_end = text.part(spot.offset, end), end >= until.offset
    pieces, is_open = _pieces(raw, spot, until, reaches_end=reaches_end)
    if not pieces:
        return Stretch(spot, None, (), None)
    lines, line_ends = _lines(pieces, is_open=is_open)
    whole = Stretch(spot, None, lines, line_ends)
    fitting, characters = _fit_lines(whole, room, cost)
    if fitting == 0 or (is_open and not reaches_end):
        return _cut_line(text, whole, raw, characters if fitting == 0 else len(lines[0]))
    return _whole_lines(text, whole, raw, sum(map(len, pieces[:fitting])) + fitting, until)


def backward(text: Text, end: Spot, count: int, room: int, cost: Cost) -> Stretch | None:
    """Return the last N lines before a spot, or None if none fits.

    What is next is the spot itself from which to go backwards again.
    """
    start = text.start_of_last(count, end.offset)
    begin = end.offset - _most_read(text, room)
    begin = max(start, begin - begin % text.coding.width)
    raw = text.part(begin, end.offset)
    pieces = raw.removesuffix("\n").split("\n")[begin > start :]
    count_kept = len(pieces)
    while count_kept:
        lines, line_ends = _lines(pieces[-count_kept:], is_open=not raw.endswith("\n"))
        stretch = Stretch(Spot(0, end.line - count_kept), None, lines, line_ends)
        spent = cost("\n".join(stretch.labelled()))
        if spent <= room:
            first = Spot(text.start_of_last(count_kept, end.offset), end.line - count_kept)
            return Stretch(first, first if first.offset > start else None, lines, line_ends)
        count_kept = min(count_kept - 1, int(count_kept * room / spent * SHRINK))
    return None


def _most_read(text: Text, room: int) -> int:
    return min(MOST_READ, max(LEAST_READ, room * READ_FOR_A_TOKEN)) * text.coding.width


def _pieces(raw: str, spot: Spot, until: Until, *, reaches_end: bool) -> tuple[list[str], bool]:
    """Return the lines without newlines, and whether the last may continue."""
    pieces = raw.split("\n")
    is_open = pieces[-1] != "" and (len(pieces) == 1 or reaches_end)
    if not is_open:
        pieces.pop()
    if until.line is not None and len(pieces) > until.line - spot.line + 1:
        return pieces[: max(0, until.line - spot.line + 1)], False
    return pieces, is_open


def _lines(pieces: Sequence[str], *, is_open: bool) -> tuple[tuple[str, ...], str | None]:
    """Return the lines as displayed, and their line ends."""
    ending = pieces[:-1] if is_open else pieces
    returns = sum(piece.endswith("\r") for piece in ending)
    line_ends = "mixed" if returns else ("LF" if ending else None)
    if returns and returns == len(ending):
        line_ends = "CRLF"
        pieces = [*(piece[:-1] for piece in ending), *pieces[len(ending) :]]
    visible = one_line_each(LONE.sub(REPLACEMENT, "\n".join(pieces)))
    return tuple(visible.split("\n")), line_ends


def _fit_lines(stretch: Stretch, room: int, cost: Cost) -> tuple[int, int]:
    """Return how many lines fit, or how many characters of the first."""
    parts = [f"{label}\n" for label in stretch.labelled()]
    *items, size = accumulate(map(len, parts), initial=0)
    first_page = page(Body("".join(parts), items=tuple(items)), 0, room, cost)
    behind_label = first_page.end - (len(parts[0]) - 1 - len(stretch.lines[0]))
    if first_page.end >= len(parts[0]) - 1:
        return max(1, bisect_right(items, first_page.end) - (first_page.end < size)), 0
    return 0, max(1, behind_label)


def _cut_line(text: Text, whole: Stretch, raw: str, characters: int) -> Stretch:
    """Return the first line up to a column."""
    spot = whole.first
    behind = spot.offset + len(text.coding.encoded(raw[:characters]))
    further = Spot(behind, spot.line, spot.column + characters)
    return Stretch(spot, further, (whole.lines[0][:characters],), None)


def _whole_lines(text: Text, whole: Stretch, raw: str, characters: int, until: Until) -> Stretch:
    """Return the whole lines that fit."""
    spot = whole.first
    fitting = raw.count("\n", 0, characters - 1) + 1
    behind = spot.offset + len(text.coding.encoded(raw[:characters]))
    line = spot.line + fitting
    is_end = behind >= until.offset or (until.line is not None and line > until.line)
    further = None if is_end else Spot(behind, line)
    return Stretch(spot, further, whole.lines[:fitting], whole.line_ends)
