"""The program's own lines in results, which carry marks that found text cannot have."""

from __future__ import annotations

import re

OWN = re.compile(r"(?m)^§ ")


def unmarked(text: str) -> str:
    """Return a result's text without the marks of its own lines."""
    return OWN.sub("", text)
