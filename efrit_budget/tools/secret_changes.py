"""Hide contents of secret files in history unless the person agrees."""

from __future__ import annotations

from collections.abc import Callable

from efrit_budget.project.git.patches import FileChange
from efrit_budget.tools.base import ToolContext


def asks_for_secret(context: ToolContext, name: str | None) -> bool:
    """Return whether a call names a secret file without consent."""
    return bool(name) and not context.confirmed and context.project.secrets.holds(str(name))


def secret_but(context: ToolContext, agreed: str | None) -> Callable[[FileChange], bool]:
    """Return a predicate for secret files other than the agreed one."""
    holds = context.project.secrets.holds

    def is_secret(change: FileChange) -> bool:
        names = {change.path, change.old_path or change.path} - {agreed}
        return any(map(holds, names))

    return is_secret
