"""Texts as they can be stored and sent."""

from __future__ import annotations


def sound_text(text: str) -> str:
    """The text without lone surrogates, which no UTF-8 can hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text
