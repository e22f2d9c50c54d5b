"""The tool `vcs_diff`: unstaged or staged changes, or those between commits."""

import os
from dataclasses import replace
from typing import Annotated

from pydantic import Field

from efrit_budget.project.git.diff import CONTEXT_LINES, Comparison, count_changes, read_patch
from efrit_budget.project.git.folder import GitError
from efrit_budget.project.git.names import name_from_root
from efrit_budget.project.git.repository import Repository
from efrit_budget.project.git.revisions import difference
from efrit_budget.project.paths import same_form
from efrit_budget.tools.base import Arguments, Hint, Outcome, ToolContext, answer, question
from efrit_budget.tools.git_tool import GitTool, asks_for_secret, secret_but
from efrit_budget.tools.layout.diffs import compressed_diff, diff_body

UNSTAGED = (
    "No changes that are not staged{place}. staged: true shows what is staged, revision: HEAD "
    "both; vcs_status names untracked files too."
)


class VcsDiffArguments(Arguments):
    """The arguments of `vcs_diff`."""

    path: Annotated[str, Field(min_length=1)] | None = None
    staged: Annotated[bool, Field(description="Staged, not unstaged")] = False
    revision: (
        Annotated[
            str,
            Field(min_length=1, description="A: since A; A..B; A...B; A^!: by A"),
        ]
        | None
    ) = None
    stat_only: bool = False
    context: Annotated[int, Field(ge=1, le=1000)] = CONTEXT_LINES


class VcsDiff(GitTool):
    """Returns one line for every changed file, then the hunks."""

    name = "vcs_diff"
    description = (
        "Git diff: every changed file with its counts, then hunks. Without arguments: unstaged "
        "changes; untracked files are not in it."
    )
    arguments = VcsDiffArguments
    hint = Hint("changed lines", tokens_each=12)

    def look(
        self, arguments: VcsDiffArguments, context: ToolContext, repository: Repository
    ) -> Outcome:
        """Return the changed files and hunks, a line that there are none, or a question."""
        name = arguments.path and name_from_root(context.project, repository, arguments.path)
        if not arguments.stat_only and asks_for_secret(context, name):
            path = same_form(arguments.path or "")
            return question(f"{path} usually holds secrets. Show its diff?")
        comparison = _comparison(arguments, repository)
        if name:
            comparison = replace(comparison, paths=(name,))
        ask = count_changes if arguments.stat_only else read_patch
        found = ask(repository, comparison)
        if not found.changes:
            missing = name is not None and not os.path.lexists(context.root / name)
            return answer(_nothing(arguments, missing=missing), {"files": []})
        return Outcome(body=diff_body(found, secret_but(context, name)), notes=found.notes)

    def compress(self, _arguments: VcsDiffArguments, outcome: Outcome) -> str:
        """Return the numbers of files and lines, and the files by kind of change."""
        return compressed_diff("Diff", outcome.whole)


def _comparison(arguments: VcsDiffArguments, repository: Repository) -> Comparison:
    commits = difference(repository, arguments.revision) if arguments.revision else []
    is_range = len(commits) > 1 or any("..." in each for each in commits)
    if arguments.staged and is_range:
        raise GitError("staged compares with one revision; give staged or a range, not both")
    command = ["diff", "--cached"] if arguments.staged else ["diff"]
    reads_files = not arguments.staged and not is_range
    return Comparison(command, commits, context=arguments.context, reads_files=reads_files)


def _nothing(arguments: VcsDiffArguments, *, missing: bool) -> str:
    place = f" in {same_form(arguments.path)}" if arguments.path else ""
    place += ", which is not on the disk either" if missing else ""
    if arguments.revision is not None:
        return f"No differences{place}."
    return f"Nothing is staged{place}." if arguments.staged else UNSTAGED.format(place=place)


TOOL = VcsDiff()
