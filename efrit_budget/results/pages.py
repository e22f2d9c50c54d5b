"""Cut a page from a result so that it fits an allowance."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass

from efrit_budget.characters import OWN_SIGNS, one_line_each
from efrit_budget.results.body import Body

Cost = Callable[[str], int]

FIRST_GUESS = 6.0
"""Characters for a token, where nothing is known yet; dense text is found by the retries."""
SHRINK = 0.94
ENOUGH = 0.88
"""A page that fills this share of its allowance is not tried larger."""
TRIES = 6
SMALLEST = 16


@dataclass(frozen=True)
class Page:
    """A range of a result's text, with a repeated header.

    In its text control characters are shown as pictures; the result itself stays as it is.
    """

    start: int
    end: int
    text: str


def page(body: Body, start: int, allowance: int, cost: Cost) -> Page:
    """Return the longest page from `start` that costs at most `allowance`.

    A page ends where an item ends, or a line where an item is too long or there are none; a
    line that is too long is cut by characters. A page is never empty while text is
    left, so that pages come to an end.
    """
    header = _header(body, start, allowance, cost) if start else ""

    def spent_on(size: int) -> int:
        return cost(header + body.text[start : start + size])

    size = _fitting_size(body, start, allowance, spent_on)
    return Page(start, start + size, one_line_each(header + body.text[start : start + size]))


def rest(body: Body, start: int, allowance: int, cost: Cost) -> Page:
    """Return the page from `start` to its furthest end, whatever it costs."""
    header = _header(body, start, allowance, cost) if start else ""
    end = furthest(body, start)
    return Page(start, end, one_line_each(header + body.text[start:end]))


def furthest(body: Body, start: int) -> int:
    """Return the furthest end of a page: the end, or the item limit."""
    if start < body.opening:
        return body.opening
    if body.most is None:
        return len(body.text)
    index = bisect_left(body.items, start) + body.most
    return _before_header(body, body.items[index]) if index < len(body.items) else len(body.text)


def _header(body: Body, start: int, allowance: int, cost: Cost) -> str:
    """Return what stands before a later page.

    That is the repeated header, unless it takes much of the page, and a backslash where a line
    that is cut would go on like one of ours.
    """
    header = continued_header(body, start)
    kept = header if cost(header) * 4 <= allowance else ""
    is_within_line = body.text[start - 1 : start] != "\n"
    return (
        f"{kept}\\" if is_within_line and body.text[start : start + 1] in set(OWN_SIGNS) else kept
    )


def continued_header(body: Body, start: int) -> str:
    """Return the header of the items at `start` if it is on an earlier page."""
    index = bisect_right(body.headers, start) - 1
    if index < 0 or body.headers[index] == start:
        return ""
    begin = body.headers[index]
    return body.text[begin : body.text.index("\n", begin)] + " (continued)\n"


def _fitting_size(body: Body, start: int, allowance: int, spent_on: Callable[[int], int]) -> int:
    """Return the size of the page, found by guessing and then halving."""
    remaining = furthest(body, start) - start
    low, high = 0, remaining + 1
    guess = min(remaining, max(SMALLEST, int(allowance * FIRST_GUESS)))
    for _ in range(TRIES):
        size = _snap_to_item(body, start, start + guess) - start
        if low and size <= low:
            break
        spent = spent_on(size)
        fits = spent <= allowance
        low, high = (size, high) if fits else (low, min(high, size))
        if fits and (size >= remaining or spent >= allowance * ENOUGH):
            break
        guess = max(1, min(int(size * allowance / max(1, spent) * SHRINK), high - 1, remaining))
    if low:
        return low
    size = max(1, min(high - 1, remaining))
    while size > 1 and spent_on(size) > allowance:
        size //= 2
    return size


def _snap_to_item(body: Body, start: int, end: int) -> int:
    """Return the last item end before `end`, or a line end if that wastes half the page.

    Inside the first line it is `end` itself.
    """
    latest = furthest(body, start)
    if end >= latest:
        return latest
    index = bisect_right(body.items, end) - 1
    item = body.items[index] if index >= 0 else 0
    found = _before_header(body, item) if index >= 0 else 0
    half = (start + end) // 2
    if found < half:
        line_end = body.text.rfind("\n", max(start, item), end) + 1
        found = line_end if line_end >= half else found
    return found if found > start else end


def _before_header(body: Body, item: int) -> int:
    """Return where a page before `item` ends, keeping the item's header with it."""
    index = bisect_right(body.headers, item) - 1
    if index >= 0 and body.text.index("\n", body.headers[index]) + 1 == item:
        return body.headers[index]
    return item
