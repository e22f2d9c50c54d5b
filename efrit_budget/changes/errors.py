"""Why a change cannot be begun, ended, shown or undone."""

from __future__ import annotations

from efrit_budget.errors import EfritError


class ChangedSinceError(EfritError):
    """A file is not as its change left it, so undoing that would lose what came later."""

    code = -32007


class ChangeError(EfritError):
    """A change cannot be kept or undone; the message says why and what to do about it."""

    code = -32008


def failed(shown: str, what: str, error: OSError) -> ChangeError:
    """What the system refused, with the file's name."""
    return ChangeError(f"{shown} cannot be {what}: {error.strerror or error}", data={"path": shown})
