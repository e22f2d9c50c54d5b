r"""Mark the program's own lines so that found text cannot imitate them.

A line that begins with one of `OWN_SIGNS` is the program's. A line of found text that begins with
such a sign, or with backslashes before one, gets a backslash at its beginning.
"""

import re
from bisect import bisect_left
from collections.abc import Collection, Sequence

from efrit_budget.characters import OWN_SIGNS

MARK = OWN_SIGNS[0]
LIKE_OWN = re.compile(rf"(?m)^(?=\\*[{OWN_SIGNS}])")
QUOTED = re.compile(rf"(?m)^\\(?=\\*[{OWN_SIGNS}])")


def own(line: str, text: str = "") -> str:
    """Return a line marked as the program's, with the found text below it quoted."""
    line = line.replace("\n", " ")
    return f"{MARK} {line}\n{quote(text)}" if text else f"{MARK} {line}"


def own_and_found(text: str, own_lines: Collection[int]) -> str:
    """Return a text with the lines of these numbers, from 0, marked as ours, the others quoted."""
    lines = enumerate(text.split("\n"))
    return "\n".join(own(line) if at in own_lines else quote(line) for at, line in lines)


def quote(text: str) -> str:
    """Return found text with a backslash before each line that looks like one of the program's."""
    return LIKE_OWN.sub(r"\\", text) if any(sign in text for sign in OWN_SIGNS) else text


def quote_with_items(text: str, items: Sequence[int]) -> tuple[str, tuple[int, ...]]:
    """Return found text quoted, and the offsets of its items in the quoted text."""
    quoted = quote(text)
    if quoted == text:
        return text, tuple(items)
    added = [match.start() for match in LIKE_OWN.finditer(text)]
    return quoted, tuple(item + bisect_left(added, item) for item in items)


def unquote(quoted: str) -> str:
    """Return quoted text as it was found, without the backslashes of `quote`."""
    return QUOTED.sub("", quoted)
