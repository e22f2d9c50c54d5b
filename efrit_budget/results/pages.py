"""Cut a page from a result so that it fits an allowance."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass

from efrit_budget.characters import OWN_SIGNS, one_line_each
from efrit_budget.results.body import Body

Cost = Callable[[str], int]

FIRST_GUESS = 6.0
"""Characters per token for the first guess at the size of a page; retries correct it."""
SHRINK = 0.94
ENOUGH = 0.88
"""A page that fills this share of its allowance is not tried larger."""
TRIES = 6
SMALLEST = 16


@dataclass(frozen=True)
class Page:
    """A range of a result's text, given by two offsets, and the text to show for it.

    That text may begin with a repeated header, and shows control characters as pictures.
    """

    start: int
    end: int
    text: str


def page(body: Body, start: int, allowance: int, cost: Cost) -> Page:
    """Return the longest page from `start` that costs at most `allowance`.

    A page ends where an item ends; where a line ends, if an item is too long or there are no
    items; or within a line that is too long. A page is never empty while text is left, so that
    the last page is reached.
    """
    header = _header(body, start, allowance, cost) if start else ""

    def spent_on(size: int) -> int:
        return cost(header + body.text[start : start + size])

    size = _fitting_size(body, start, allowance, spent_on)
    return Page(start, start + size, one_line_each(header + body.text[start : start + size]))


def rest(body: Body, start: int, allowance: int, cost: Cost) -> Page:
    """Return the page from `start` to the furthest end it may have, whatever it costs."""
    header = _header(body, start, allowance, cost) if start else ""
    end = furthest(body, start)
    return Page(start, end, one_line_each(header + body.text[start:end]))


def furthest(body: Body, start: int) -> int:
    """Return the offset where a page from `start` ends at the latest, by the limits of the body."""
    if start < body.opening:
        return body.opening
    if body.most is None:
        return len(body.text)
    index = bisect_left(body.items, start) + body.most
    return _before_header(body, body.items[index]) if index < len(body.items) else len(body.text)


def _header(body: Body, start: int, allowance: int, cost: Cost) -> str:
    """Return the text to put before a page that is not the first.

    It is the repeated header, unless that takes over a quarter of the allowance, and a backslash
    if the page begins within a line, with a sign of our own lines.
    """
    header = continued_header(body, start)
    kept = header if cost(header) * 4 <= allowance else ""
    is_within_line = body.text[start - 1 : start] != "\n"
    return (
        f"{kept}\\" if is_within_line and body.text[start : start + 1] in set(OWN_SIGNS) else kept
    )


def continued_header(body: Body, start: int) -> str:
    """Return the header above the item at `start`, empty if there is none or it begins there."""
    index = bisect_right(body.headers, start) - 1
    if index < 0 or body.headers[index] == start:
        return ""
    begin = body.headers[index]
    return body.text[begin : body.text.index("\n", begin)] + " (continued)\n"


def _fitting_size(body: Body, start: int, allowance: int, spent_on: Callable[[int], int]) -> int:
    """Return the characters of the page, at least 1; find them by guessing, then by halving."""
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
    """Return the last item end before `end`, or the last line end if that wastes half the page.

    Return `end` itself if there is neither after `start`.
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
    """Return the offset where a page ends before `item`, or before a header just above it."""
    index = bisect_right(body.headers, item) - 1
    if index >= 0 and body.text.index("\n", body.headers[index]) + 1 == item:
        return body.headers[index]
    return item
