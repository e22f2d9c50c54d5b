"""The base of tools that run git, and checks for secret files in what git shows."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from efrit_budget.project.git.folder import GitError
from efrit_budget.project.git.patches import FileChange
from efrit_budget.project.git.repository import Repository, open_repository
from efrit_budget.project.paths import OutsideError
from efrit_budget.tools.base import Outcome, Tool, ToolContext, failure


class GitTool(Tool):
    """The base of tools that read the git repository of the project."""

    def run(self, arguments: Any, context: ToolContext) -> Outcome:
        """Return the outcome of `look`, or a failure that says why git cannot do it."""
        try:
            repository = open_repository(context.root, context.cancellation)
            return self.look(arguments, context, repository)
        except (GitError, OutsideError) as error:
            return failure(error.message)

    @abstractmethod
    def look(self, arguments: Any, context: ToolContext, repository: Repository) -> Outcome:
        """Return the outcome of the tool in the repository; raise `GitError` or `OutsideError`."""


def asks_for_secret(context: ToolContext, name: str | None) -> bool:
    """Return whether the named file is secret and the person did not consent to this call."""
    return bool(name) and not context.confirmed and context.project.secrets.holds(str(name))


def secret_but(context: ToolContext, agreed: str | None) -> Callable[[FileChange], bool]:
    """Return a function that says if a change is of a secret file other than `agreed`."""
    holds = context.project.secrets.holds

    def is_secret(change: FileChange) -> bool:
        names = {change.path, change.old_path or change.path} - {agreed}
        return any(map(holds, names))

    return is_secret
