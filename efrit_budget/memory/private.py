"""Remove text between `<private>` and `</private>` before it is stored."""

from __future__ import annotations

import re

from efrit_budget.errors import Json

# What stands in an opening mark is withheld with what it opens, so that its end is not looked for.
MARK = re.compile(r"<\s*private(?![\w.:-])|<\s*(/)\s*private(?![\w.:-])[^<>]*>", re.IGNORECASE)
WITHHELD = "[private]"


def without_private(text: str) -> str:
    """Return the text with each private part replaced by a marker.

    Stretches may be nested. One that is never closed reaches to the end of the text, and one that
    was never opened, from its beginning: the other mark may stand in a text beside this one.
    """
    parts: list[str] = []
    depth = end = 0
    last = text.rfind(">")
    for mark in MARK.finditer(text, 0, last + 1):
        closes = bool(mark[1])
        if closes and depth == 0:
            parts = [WITHHELD]
            end = mark.end()
            continue
        if depth == 0:
            parts += (text[end : mark.start()], WITHHELD)
        depth += -1 if closes else 1
        if depth == 0:
            end = mark.end()
    return "".join(parts) + ("" if depth else text[end:])


def public(value: Json) -> Json:
    """Return a JSON value with private parts removed from its texts."""
    if isinstance(value, str):
        return without_private(value)
    if isinstance(value, list | tuple):
        return [public(each) for each in value]
    if isinstance(value, dict):
        return {without_private(name): public(each) for name, each in value.items()}
    return value
