"""A tool that looks into git's history, and what of that is hidden unless the person agrees."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from efrit_budget.project.git.folder import GitError
from efrit_budget.project.git.patches import FileChange
from efrit_budget.project.git.repository import Repository, open_repository
from efrit_budget.project.paths import OutsideError
from efrit_budget.tools.base import Outcome, Tool, ToolContext, failure


class GitTool(Tool):
    """A tool that looks into the repository of the project."""

    def run(self, arguments: Any, context: ToolContext) -> Outcome:
        """Look into the repository; say why if git cannot do it."""
        try:
            repository = open_repository(context.root, context.cancellation)
            return self.look(arguments, context, repository)
        except (GitError, OutsideError) as error:
            return failure(error.message)

    @abstractmethod
    def look(self, arguments: Any, context: ToolContext, repository: Repository) -> Outcome:
        """Return what is found; raise `GitError` or `OutsideError` if it cannot be found."""


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
