"""The program's own lines in results, as a model tells them from found text."""

from __future__ import annotations

import re

OWN = re.compile(r"(?m)^§ ")


def unmarked(text: str) -> str:
    """A result's text without the marks of its own lines."""
    return OWN.sub("", text)
