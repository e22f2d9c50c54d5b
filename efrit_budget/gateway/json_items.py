"""Find the items of a JSON text: the elements of its longest list."""

import json
from json.decoder import JSONDecoder

BLANKS = " \t\r\n"
LEAST = 2
"""The least elements of a list whose elements are items."""
_decode = JSONDecoder().raw_decode


def item_offsets(text: str) -> list[int]:
    """Return where the elements begin of the list that is the text, or of its longest member.

    Return nothing if the text is not JSON of such a form. An element that stands on a line of its
    own begins where the line begins.
    """
    start = _skip(text, 0)
    try:
        if text.startswith("[", start):
            found, end = _elements(text, start)
        elif text.startswith("{", start):
            found, end = _longest_member(text, start)
        else:
            return []
    except (ValueError, RecursionError):
        return []
    if len(found) < LEAST or _skip(text, end) != len(text):
        return []
    return [_line_start(text, offset) for offset in found]


def _skip(text: str, at: int) -> int:
    """Return the offset of the first character from `at` on that is no blank."""
    while at < len(text) and text[at] in BLANKS:
        at += 1
    return at


def _elements(text: str, at: int) -> tuple[list[int], int]:
    """Return the offsets of the elements of the list at `at`, and the offset behind the list."""
    found = []
    at = _skip(text, at + 1)
    while not text.startswith("]", at):
        found.append(at)
        _, at = _decode(text, at)
        at = _behind_comma(text, at, "]")
    return found, at + 1


def _longest_member(text: str, at: int) -> tuple[list[int], int]:
    """Return the elements of the longest list among an object's members, and the object's end."""
    longest: list[int] = []
    at = _skip(text, at + 1)
    while not text.startswith("}", at):
        at = _behind_name(text, at)
        if text.startswith("[", at):
            found, at = _elements(text, at)
            longest = max(longest, found, key=len)
        else:
            _, at = _decode(text, at)
        at = _behind_comma(text, at, "}")
    return longest, at + 1


def _behind_name(text: str, at: int) -> int:
    """Return the offset of the value behind a member's name; raise if there is no name."""
    if not text.startswith('"', at):
        raise json.JSONDecodeError("a name is missing", text, at)
    _, at = _decode(text, at)
    at = _skip(text, at)
    if not text.startswith(":", at):
        raise json.JSONDecodeError("a colon is missing", text, at)
    return _skip(text, at + 1)


def _behind_comma(text: str, at: int, end: str) -> int:
    """Return the offset of the next element, or of the sign at the end; raise if it is neither."""
    at = _skip(text, at)
    if text.startswith(",", at):
        return _skip(text, at + 1)
    if not text.startswith(end, at):
        raise json.JSONDecodeError("a comma is missing", text, at)
    return at


def _line_start(text: str, offset: int) -> int:
    """Return where the line begins if only blanks stand before `offset` in it, else `offset`."""
    begin = offset
    while begin and text[begin - 1] in " \t":
        begin -= 1
    return begin if text[begin - 1 : begin] == "\n" else offset
