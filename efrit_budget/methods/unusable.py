"""What of a tool's arguments turned out to be of no use on this machine."""

from __future__ import annotations

import errno

from efrit_budget.errors import Json
from efrit_budget.project.ripgrep import NoRipgrepError

FIRST_HALF, LAST_HALF = "\ud800", "\udfff"


def problem_of(error: BaseException, arguments: Json) -> str | None:
    """Return what the model should know of an error that its arguments caused; else None."""
    if isinstance(error, NoRipgrepError):
        return error.message
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        return "a path among the arguments is longer than names can be here; give a shorter one"
    if isinstance(error, UnicodeEncodeError) and holds_half(arguments):
        return "an argument holds half of a character (a lone surrogate); leave it out"
    return None


def holds_half(value: Json) -> bool:
    """Tell whether half of a character stands in a value, which JSON can write."""
    if isinstance(value, str):
        return any(FIRST_HALF <= letter <= LAST_HALF for letter in value)
    if isinstance(value, dict):
        return any(holds_half(each) for pair in value.items() for each in pair)
    return isinstance(value, list) and any(map(holds_half, value))
