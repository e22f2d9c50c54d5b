"""Characters that end lines, control terminals or are invisible, and their pictures."""

import re

CONTROLS = r"\x00-\x1f\x7f-\x9f\u2028\u2029"
"""Characters that end a line or command a terminal, for a class of a regular expression."""
UNSEEN = (
    r"\u00a0\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u1680"
    r"\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u202a-\u202f\u205f-\u206f\u2800\u3000\u3164"
    r"\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f"
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Characters that are not seen or change the order of others: blanks, fillers, bidi marks."""
OWN_SIGNS = "§📏⚡"
"""The signs at the beginning of the program's own lines in a result, and of no other lines."""
HIDDEN = re.compile(rf"(?!\n|\t)[{CONTROLS}{UNSEEN}]")

BREAKING = re.compile(rf"(?!\n|\t)[{CONTROLS}\ud800-\udfff]")
LINE_BREAK, UNKNOWN = "␤", "\N{REPLACEMENT CHARACTER}"
PICTURES = {code: chr(0x2400 + code) for code in range(32) if code not in b"\n\t"} | {127: "␡"}
"""Maps the code of a control character to its picture: ␍ for a carriage return, ␛ for an escape."""


def one_line_each(text: str) -> str:
    """Return the text with control characters as pictures, so that lines end at newlines alone.

    Lone surrogates become question marks. The text keeps its length, so that offsets in it stay
    the same.
    """
    return text.translate(PICTURES) if text.isascii() else BREAKING.sub(_picture, text)


def _picture(match: re.Match[str]) -> str:
    sign = match[0]
    if "\ud800" <= sign <= "\udfff":
        return "?"
    return LINE_BREAK if sign in "\x85\u2028\u2029" else PICTURES.get(ord(sign), UNKNOWN)


def sound_text(text: str) -> str:
    """Return the text with lone surrogates replaced, which cannot be stored or sent."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def all_seen(text: str) -> str:
    """Return the text with each hidden character as its code, so that nothing in it is unseen."""
    return HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
