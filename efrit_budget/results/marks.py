r"""Mark the program's own lines so that found text cannot imitate them.

A line that begins with one of the signs is the program's. Found text in which a line begins so
gets a backslash there, and one more where backslashes stood before the sign already.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from efrit_budget.characters import OWN_SIGNS

MARK = OWN_SIGNS[0]
LIKE_OWN = re.compile(rf"(?m)^(?=\\*[{OWN_SIGNS}])")
QUOTED = re.compile(rf"(?m)^\\(?=\\*[{OWN_SIGNS}])")


def own(line: str, text: str = "") -> str:
    """Mark a line as the program's, and quote the found text below it."""
    line = line.replace("\n", " ")
    return f"{MARK} {line}\n{quote(text)}" if text else f"{MARK} {line}"


def own_and_found(text: str, own_lines: Collection[int]) -> str:
    """Mark lines by their numbers, from 0, as the program's; quote the others."""
    lines = enumerate(text.split("\n"))
    return "\n".join(own(line) if at in own_lines else quote(line) for at, line in lines)


def quote(text: str) -> str:
    """Have no line of found text begin as the program's own do."""
    return LIKE_OWN.sub(r"\\", text) if any(sign in text for sign in OWN_SIGNS) else text


def unquote(quoted: str) -> str:
    """Give found text back as it was."""
    return QUOTED.sub("", quoted)
