"""The errors of beginning, ending, showing and undoing changes."""

from __future__ import annotations

from efrit_budget.errors import EfritError


class ChangedSinceError(EfritError):
    """A file changed after the edit, so undoing would lose later work."""

    code = -32007


class ChangeError(EfritError):
    """A change cannot be stored or undone; the message says why and what to do."""

    code = -32008


def failed(shown: str, what: str, error: OSError) -> ChangeError:
    """Return the error for a system call that failed on a file."""
    return ChangeError(f"{shown} cannot be {what}: {error.strerror or error}", data={"path": shown})
