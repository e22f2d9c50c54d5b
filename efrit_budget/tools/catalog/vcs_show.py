"""The tool `vcs_show`: one commit, or a file or folder in a commit."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from efrit_budget.project.git.commit_files import split_revision
from efrit_budget.project.git.commits import FIELDS, FORMAT, Commit, commit_of
from efrit_budget.project.git.diff import Comparison, read_patch
from efrit_budget.project.git.names import name_from_root
from efrit_budget.project.git.repository import Repository
from efrit_budget.project.git.revisions import commit
from efrit_budget.project.paths import same_form
from efrit_budget.results.body import Body, preceded
from efrit_budget.results.marks import own, quote
from efrit_budget.tools.base import Arguments, Hint, Outcome, ToolContext, failure, question
from efrit_budget.tools.git_snapshot import past_outcome
from efrit_budget.tools.git_tool import GitTool, asks_for_secret, secret_but
from efrit_budget.tools.layout.diffs import compressed_diff, diff_body

COMMAND = ("show", FORMAT, "--no-notes", "--decorate=short")
MERGE_NOTE = (
    "A merge: shown is what differs from every parent. vcs_diff {short}^..{short} shows what it "
    "brought."
)


class VcsShowArguments(Arguments):
    """The arguments of `vcs_show`."""

    revision: Annotated[str, Field(min_length=1, description="HEAD~3, or HEAD~3:a.py")]
    path: Annotated[str, Field(min_length=1)] | None = None


class VcsShow(GitTool):
    """Returns author, date, message and changes of a commit, or a file or folder in it."""

    name = "vcs_show"
    description = (
        "One git commit: message, changed files with counts, hunks; or a file or folder as it was."
    )
    arguments = VcsShowArguments
    hint = Hint("changed lines", tokens_each=12)

    def look(
        self, arguments: VcsShowArguments, context: ToolContext, repository: Repository
    ) -> Outcome:
        """Return the commit, or the file or folder in it."""
        past = split_revision(arguments.revision)
        if past is not None and arguments.path is None:
            return past_outcome(context, repository, *past)
        if past is not None:
            return failure("the revision names a path already; leave out one of the two")
        name = arguments.path and name_from_root(context.project, repository, arguments.path)
        if asks_for_secret(context, name):
            path = same_form(arguments.path or "")
            return question(f"{path} usually holds secrets. Show its diff?")
        return _show(arguments, name, context, repository)

    def compress(self, arguments: VcsShowArguments, outcome: Outcome) -> str:
        """Return the commit and its changes, or the revision with a path and the size shown."""
        body = outcome.whole
        if "subject" not in body.data:
            size = f"{body.whole_count:,} {body.noun}"
            return f"Showed {same_form(arguments.revision)}: {size}"[:500]
        found = f"Commit {body.data['short']} by {body.data['author']}: {body.data['subject']}"
        return compressed_diff(found[:200], body)


def _show(
    arguments: VcsShowArguments, name: str | None, context: ToolContext, repository: Repository
) -> Outcome:
    """Return a commit with all its changes, or with the changes of the path `name`."""
    digest = commit(repository, arguments.revision)
    comparison = Comparison(
        [*COMMAND, "--diff-merges=dense-combined"],
        [digest],
        (name,) if name else (),
        fields=len(FIELDS),
        combined_status="M",
    )
    found = read_patch(repository, comparison)
    fields = found.fields
    if not fields:  # git prints nothing if the path did not change
        finished = repository.run(*COMMAND, "--no-patch", "--end-of-options", digest)
        fields = finished.stdout.split(b"\0")[: len(FIELDS)]
    shown_commit = commit_of(fields)
    preamble = "".join(f"{own(line)}\n" for line in _lines(shown_commit))
    preamble += f"\n{quote(shown_commit.message)}\n\n"
    if not found.changes:
        body = preceded(
            f"{preamble}{own(_no_changes(arguments, shown_commit))}\n", Body("", data={"files": []})
        )
    else:
        body = diff_body(found, secret_but(context, name), preamble)
    more = {"parents": list(shown_commit.parents), "message": shown_commit.message}
    body.data.update(shown_commit.facts | more)
    notes = (MERGE_NOTE.format(short=shown_commit.short),) if len(shown_commit.parents) > 1 else ()
    return Outcome(body=body, notes=(*found.notes, *notes))


def _lines(told: Commit) -> Iterator[str]:
    refs = f" ({told.refs})" if told.refs else ""
    yield f"commit {told.hash}{refs}"
    yield f"{told.author} <{told.author_email}>, {told.authored}"
    if (told.committer, told.committer_email) != (told.author, told.author_email):
        yield f"committed by {told.committer} <{told.committer_email}>, {told.committed}"
    if len(told.parents) > 1:
        yield f"merges {' '.join(parent[: len(told.short)] for parent in told.parents)}"


def _no_changes(arguments: VcsShowArguments, told: Commit) -> str:
    if arguments.path is not None:
        return f"It does not change {same_form(arguments.path)}."
    return "No file differs from every parent." if len(told.parents) > 1 else "No changes."


TOOL = VcsShow()
