"""Find the lines of a text that a call asks for, one page at a time."""

from dataclasses import dataclass, replace

from efrit_budget.errors import EfritError, JsonObject
from efrit_budget.project.text.reading import Text
from efrit_budget.tools.base import ToolContext
from efrit_budget.tools.layout.lines import Spot, Stretch, Until, backward, forward
from efrit_budget.tools.sizes import counted

AROUND = (50, 25, 12, 6, 3, 1, 0)
"""The numbers of lines on each side of `around_line` to try until they fit."""


@dataclass(frozen=True)
class Served:
    """The lines of one page, and the values from which the next page is found (`more`)."""

    stretch: Stretch
    more: JsonObject | None = None
    goes_back: bool = False
    changed: bool = False


class NoLineError(EfritError):
    """The page would begin beyond the end of the text."""


@dataclass(frozen=True)
class Asked:
    """A request for the first page of some lines of a text."""

    start_line: int | None
    end_line: int | None
    around_line: int | None
    tail: int | None

    def page(self, text: Text, room: int, context: ToolContext) -> Served:
        """Return the first page of the lines; raise if they begin beyond the end of the text."""
        if self.tail is not None:
            total = text.known_lines()
            end = Spot(text.end, 0 if total is None else total + 1)
            return _backward_page(text, end, self.tail, room, context)
        if self.around_line is not None:
            return self._around(text, self.around_line, room, context)
        return self._lines(text, self.start_line or 1, self.end_line, room, context)

    def _around(self, text: Text, line: int, room: int, context: ToolContext) -> Served:
        for radius in AROUND:
            first = max(1, line - radius)
            current = self._lines(text, first, line + radius, room, context, needed=line)
            if current.stretch.last_line >= line:
                break
        return current

    def _lines(
        self,
        text: Text,
        first: int,
        last: int | None,
        room: int,
        context: ToolContext,
        needed: int | None = None,
    ) -> Served:
        start = text.start_of(needed or first)
        if start is not None and needed is not None:
            start = text.start_of(first)
        if start is None:
            lines = counted(text.count_lines(), "line")
            raise NoLineError(f"it has {lines}; ask for one of those")
        return _forward_page(text, Spot(start, first), Until(text.end, last), room, context)


@dataclass(frozen=True)
class Further:
    """A request for the page that follows the one with this `more`."""

    more: JsonObject

    def page(self, text: Text, room: int, context: ToolContext) -> Served:
        """Return the next page; raise if the text is shorter now than where it begins."""
        more = self.more
        spot = Spot(more["offset"], more["line"], more["column"])
        if spot.offset > text.end or (spot.offset == text.end and not more["left"]):
            raise NoLineError(
                "it is shorter now than where the page before ended; read it anew without"
                " continuation_token"
            )
        if more["left"]:
            next_page = _backward_page(text, spot, more["left"], room, context)
        else:
            end = text.end if more["end"] is None else min(more["end"], text.end)
            next_page = _forward_page(text, spot, Until(end, more["end_line"]), room, context)
        return replace(next_page, changed=more["state"] != text.state)


def _forward_page(text: Text, spot: Spot, until: Until, room: int, context: ToolContext) -> Served:
    """Return the page that begins at a spot and goes on to `until`, as far as there is room."""
    stretch = forward(text, spot, until, room, context.cost)
    if stretch.next is None:
        return Served(stretch)
    end = None if until.offset == text.end else until.offset
    more = {"end": end, "end_line": until.line, "left": 0, **vars(stretch.next)}
    return Served(stretch, more)


def _backward_page(text: Text, end: Spot, count: int, room: int, context: ToolContext) -> Served:
    """Return the page with the last lines, of `count`, before a spot."""
    stretch = backward(text, end, count, room, context.cost)
    if stretch is None:  # a line longer than a page is read from its beginning
        start = text.start_of_last(count, end.offset)
        line = 1 if start == text.begin else end.line - count
        return _forward_page(text, Spot(start, line), Until(end.offset), room, context)
    if stretch.next is None:
        return Served(stretch)
    remaining = count - len(stretch.lines)
    more = {"end": None, "end_line": None, "left": remaining, **vars(stretch.next)}
    return Served(stretch, more, goes_back=True)
