"""Keeping what stands between `<private>` and `</private>` off the disk."""

from __future__ import annotations

import re

MARK = re.compile(r"<\s*(/?)\s*private\b[^<>]*>", re.IGNORECASE)
WITHHELD = "[private]"


def without_private(text: str) -> str:
    """The text with each private stretch replaced by a word that says so.

    Stretches may be nested, and one that is never closed reaches to the end.
    """
    kept: list[str] = []
    depth = end = 0
    for mark in MARK.finditer(text):
        closes = bool(mark[1])
        if depth == 0 and not closes:
            kept += (text[end : mark.start()], WITHHELD)
        if closes and depth == 0:
            continue
        depth += -1 if closes else 1
        if depth == 0:
            end = mark.end()
    return "".join(kept) + ("" if depth else text[end:])
