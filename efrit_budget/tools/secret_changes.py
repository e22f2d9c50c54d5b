"""Which files' contents are left out of history unless the person agrees."""

from __future__ import annotations

from collections.abc import Callable

from efrit_budget.project.patches import Change
from efrit_budget.tools.base import ToolContext


def asks_for_secret(context: ToolContext, name: str | None) -> bool:
    """Whether a call names a file that usually holds secrets, and the person was not asked."""
    return bool(name) and not context.confirmed and context.project.secrets.holds(str(name))


def secret_but(context: ToolContext, agreed: str | None) -> Callable[[Change], bool]:
    """Whether a change is of a file that usually holds secrets, but for the one agreed to."""
    holds = context.project.secrets.holds

    def is_secret(change: Change) -> bool:
        names = {change.path, change.old_path or change.path} - {agreed}
        return any(map(holds, names))

    return is_secret
