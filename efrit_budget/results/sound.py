"""Make texts valid for storage and the wire."""

from __future__ import annotations


def sound_text(text: str) -> str:
    """Return the text with lone surrogates replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text
