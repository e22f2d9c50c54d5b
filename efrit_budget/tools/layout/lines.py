"""Choose the numbered lines that fit an allowance, and the spot from which to go on."""

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
"""The characters that are read for each token of room; few texts have more in a token."""
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

    Lines are numbered from 1, or backwards from -1 if the lines of the file are not counted.
    """

    offset: int
    line: int
    column: int = 0


@dataclass(frozen=True)
class Until:
    """The end of the requested range: a byte offset, and the last line if one is given."""

    offset: int
    line: int | None = None


@dataclass(frozen=True)
class Stretch:
    """The consecutive lines of one page."""

    first: Spot
    next: Spot | None
    """The spot from which the next page goes on; None at the end of the request."""
    lines: tuple[str, ...]
    line_ends: str | None
    """LF, CRLF or mixed; None if no line in it ends."""

    @property
    def last_line(self) -> int:
        """The number of the last line of the page."""
        return self.first.line + len(self.lines) - 1

    @property
    def columns(self) -> tuple[int, int] | None:
        """The first and last column shown of a partial line; None if all lines are whole."""
        if not self.first.column and not self.is_cut:
            return None
        return self.first.column + 1, self.first.column + len(self.lines[0])

    @property
    def is_cut(self) -> bool:
        """Return whether the page has one line, which goes on behind the page."""
        return self.next is not None and self.next.column > 0

    def labelled(self) -> list[str]:
        """Return each line behind its number and a tab."""
        spot = self.first
        numbered = [f"{spot.line + at}\t{line}" for at, line in enumerate(self.lines)]
        if spot.column:
            numbered[0] = f"{spot.line}:{spot.column + 1}\t{self.lines[0]}"
        return numbered

    def signs(self) -> str:
        """Return a sentence on the meaning of the replacement signs in the lines, or nothing."""
        text = "\n".join(self.lines)
        meanings = [f"{sign} is {meaning}" for sign, meaning in STANDS_FOR.items() if sign in text]
        return f"{', '.join(meanings)}." if meanings else ""


def forward(text: Text, spot: Spot, until: Until, room: int, cost: Cost) -> Stretch:
    """Return the lines from a spot that fit the room; cut the first one if it does not fit."""
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
    """Return the last `count` lines before a spot that fit the room, or None if none fits.

    The spot `next` is the beginning of these lines: the next page ends there.
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
    """Return the lines of `raw` up to `until`, and whether the last one lacks its newline."""
    pieces = raw.split("\n")
    is_open = pieces[-1] != "" and (len(pieces) == 1 or reaches_end)
    if not is_open:
        pieces.pop()
    if until.line is not None and len(pieces) > until.line - spot.line + 1:
        return pieces[: max(0, until.line - spot.line + 1)], False
    return pieces, is_open


def _lines(pieces: Sequence[str], *, is_open: bool) -> tuple[tuple[str, ...], str | None]:
    """Return the lines as displayed, and their line ends: LF, CRLF, mixed or None."""
    ending = pieces[:-1] if is_open else pieces
    returns = sum(piece.endswith("\r") for piece in ending)
    line_ends = "mixed" if returns else ("LF" if ending else None)
    if returns and returns == len(ending):
        line_ends = "CRLF"
        pieces = [*(piece[:-1] for piece in ending), *pieces[len(ending) :]]
    visible = one_line_each(LONE.sub(REPLACEMENT, "\n".join(pieces)))
    return tuple(visible.split("\n")), line_ends


def _fit_lines(stretch: Stretch, room: int, cost: Cost) -> tuple[int, int]:
    """Return the number of lines that fit, or 0 and the characters of the first line that fit."""
    parts = [f"{label}\n" for label in stretch.labelled()]
    *items, size = accumulate(map(len, parts), initial=0)
    first_page = page(Body("".join(parts), items=tuple(items)), 0, room, cost)
    behind_label = first_page.end - (len(parts[0]) - 1 - len(stretch.lines[0]))
    if first_page.end >= len(parts[0]) - 1:
        return max(1, bisect_right(items, first_page.end) - (first_page.end < size)), 0
    return 0, max(1, behind_label)


def _cut_line(text: Text, whole: Stretch, raw: str, characters: int) -> Stretch:
    """Return the first line of `whole`, cut after a number of characters."""
    spot = whole.first
    behind = spot.offset + len(text.coding.encoded(raw[:characters]))
    further = Spot(behind, spot.line, spot.column + characters)
    return Stretch(spot, further, (whole.lines[0][:characters],), None)


def _whole_lines(text: Text, whole: Stretch, raw: str, characters: int, until: Until) -> Stretch:
    """Return the first lines of `whole`, those in the first `characters` of `raw`."""
    spot = whole.first
    fitting = raw.count("\n", 0, characters - 1) + 1
    behind = spot.offset + len(text.coding.encoded(raw[:characters]))
    line = spot.line + fitting
    is_end = behind >= until.offset or (until.line is not None and line > until.line)
    further = None if is_end else Spot(behind, line)
    return Stretch(spot, further, whole.lines[:fitting], whole.line_ends)
