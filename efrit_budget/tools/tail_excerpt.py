"""Show the end of a text beside its first page."""

from __future__ import annotations

from collections.abc import Sequence

from efrit_budget.results.body import Body
from efrit_budget.results.footer import LONGEST_FOOTER, LONGEST_NAVIGATION
from efrit_budget.results.marks import own, unquote
from efrit_budget.tools.base import ToolContext

LEAST_ROOM = 30
"""Tokens below which an end is not worth its heading."""
READ_FOR_A_TOKEN = 8
SHRINK = 0.9


def last_lines(body: Body, beside: Sequence[str], context: ToolContext) -> tuple[str, ...]:
    """Return a note with the last lines of a body, or nothing if all of it fits."""
    most = context.allowance * READ_FOR_A_TOKEN * 5
    rest = "\n".join(beside) + LONGEST_FOOTER
    if len(body.text) <= most and context.cost(body.text + rest) <= context.allowance:
        return ()
    room = (context.allowance - context.cost(f"{LONGEST_NAVIGATION}\n{rest}")) // 2
    return _fit_lines(body, room, context) if room >= LEAST_ROOM else ()


def _fit_lines(body: Body, room: int, context: ToolContext) -> tuple[str, ...]:
    text = body.text.removesuffix("\n")
    total = body.whole_count
    size = room * READ_FOR_A_TOKEN
    while size > 0:
        excerpt, lines = _cut_end(text, size)
        heading = f"… the end, from line {total - lines + 1:,} on:"
        spent = context.cost(f"{own(heading)}\n{excerpt}\n")
        if spent <= room:
            return (f"{heading}\n{unquote(excerpt)}",)
        size = min(size - 1, int(len(excerpt) * room / spent * SHRINK))
    return ()


def _cut_end(text: str, size: int) -> tuple[str, int]:
    """Return whole lines from the end up to a size."""
    tail = text[-size:]
    if len(tail) < len(text) and text[-size - 1] != "\n" and "\n" in tail:
        tail = tail.partition("\n")[2]
    elif len(tail) < len(text) and "\n" not in tail:
        tail = f"…{tail}"
    return tail, tail.count("\n") + 1
