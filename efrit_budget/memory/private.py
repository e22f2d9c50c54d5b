"""Remove text between `<private>` and `</private>` before it is stored."""

import re
from typing import Any, TypeVar, cast

Value = TypeVar("Value")

# An opening mark is withheld with its text, so the pattern need not find where the mark ends.
MARK = re.compile(r"<\s*private(?![\w.:-])|<\s*(/)\s*private(?![\w.:-])[^<>]*>", re.IGNORECASE)
WITHHELD = "[private]"


def without_private(text: str) -> str:
    """Return the text with each private part replaced by a marker.

    Private parts may be nested. A part that is never closed reaches to the end of the text; a part
    that is never opened begins where the text begins, as it may be opened in a text before it.
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


def public(value: Value) -> Value:
    """Return a JSON value with private parts removed from its texts and names."""
    found: Any = value
    if isinstance(found, str):
        found = without_private(found)
    elif isinstance(found, list | tuple):
        found = [public(each) for each in found]
    elif isinstance(found, dict):
        found = {without_private(name): public(each) for name, each in found.items()}
    return cast("Value", found)
