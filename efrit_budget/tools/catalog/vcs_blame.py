"""The tool `vcs_blame`: the commit, day and author of each line of a file."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated

from pydantic import Field

from efrit_budget.errors import Json, JsonObject
from efrit_budget.project.git.blame import Run, find_runs
from efrit_budget.project.git.folder import GitError
from efrit_budget.project.git.names import name_from_root
from efrit_budget.project.git.repository import Repository
from efrit_budget.project.git.revisions import commit
from efrit_budget.project.paths import same_form, shown_name
from efrit_budget.results.body import of_items
from efrit_budget.tools.base import Arguments, Hint, Outcome, ToolContext, answer, failure, question
from efrit_budget.tools.git_tool import GitTool, asks_for_secret
from efrit_budget.tools.sizes import counted

TOO_SHORT = re.compile(r"has only (\d+) lines?")
NOT_THERE = ("no such path", "no such ref", "is a directory", "unsupported file type")
NOT_ON_DISK = ("cannot stat path", "Cannot lstat", "cannot lstat")
LAST_LINE = 2**31 - 1
BEHIND_ANY_END = {"start_line": LAST_LINE, "end_line": None}
Line = Annotated[int, Field(ge=1, le=LAST_LINE)]


class VcsBlameArguments(Arguments):
    """The arguments of `vcs_blame`."""

    path: Annotated[str, Field(min_length=1)]
    start_line: Line = 1
    end_line: Line | None = None
    revision: Annotated[str, Field(min_length=1, description="As of then")] | None = None


class VcsBlame(GitTool):
    """Lists the lines of a file below the commits that they come from."""

    name = "vcs_blame"
    description = (
        "Git blame: a file's lines, numbered, under the commit, day and author they come from."
    )
    arguments = VcsBlameArguments
    hint = Hint("lines", tokens_each=15)

    def look(
        self, arguments: VcsBlameArguments, context: ToolContext, repository: Repository
    ) -> Outcome:
        """Return the lines below their commits, or ask about a secret file."""
        name = name_from_root(context.project, repository, arguments.path)
        if asks_for_secret(context, name):
            return question(f"{same_form(arguments.path)} usually holds secrets. Show its lines?")
        if arguments.end_line is not None and arguments.end_line < arguments.start_line:
            return failure(
                f"end_line {arguments.end_line} is before start_line {arguments.start_line}; "
                f"{shown_name(name)} has {_length(repository, name, arguments)} lines"
            )
        runs = _runs(repository, name, arguments)
        if not runs:
            return answer(f"{shown_name(name)} is empty.", {"runs": []})
        crlf = all(line.endswith(b"\r") for run in runs for line in run.lines)
        groups = [(_header(run, name), list(_items(run, crlf=crlf))) for run in runs]
        body = of_items("lines", groups, path=shown_name(name), runs=[_facts(run) for run in runs])
        notes = (*_notes(arguments, context, runs), *(["CRLF"] if crlf else []))
        return Outcome(body=replace(body, item_data=()), notes=notes)

    def compress(self, arguments: VcsBlameArguments, outcome: Outcome) -> str:
        """Return which lines were read, and the number of lines of each author."""
        body = outcome.whole
        runs = body.data["runs"]
        written = Counter[str]()
        for run in runs:
            written[run["author"]] += run["end"] - run["start"] + 1
        authors = ", ".join(f"{author} ({count:,})" for author, count in written.most_common())
        commits = counted(len({run["hash"] for run in runs}), "commit")
        lines = f"lines {runs[0]['start']:,}-{runs[-1]['end']:,}" if runs else "no lines"
        text = f"Blamed {same_form(arguments.path)}, {lines}: {commits}. {authors}"
        return text if len(text) <= 500 else f"{text[:496]} ..."


def _runs(repository: Repository, name: str, arguments: VcsBlameArguments) -> list[Run]:
    options = [f"-L{arguments.start_line},{arguments.end_line or ''}"]
    if arguments.start_line == 1 and arguments.end_line is None:
        options = []
    if arguments.revision is not None:
        options.append(commit(repository, arguments.revision))
    try:
        return find_runs(repository, options, name)
    except GitError as error:
        raise _explain(error, name, arguments) from error


def _explain(error: GitError, name: str, arguments: VcsBlameArguments) -> GitError:
    """Return the error with advice if git's complaint is a known one, else the error itself."""
    displayed, then = shown_name(name), arguments.revision or "HEAD"
    short = TOO_SHORT.search(error.complaint)
    if short is not None:
        return GitError(f"{displayed} has {short[1]} lines, so none is line {arguments.start_line}")
    if any(words in error.complaint for words in NOT_THERE):
        return GitError(
            f"{displayed} is not a file in {then}. vcs_log with this path names the commits that "
            "changed it; give one that had it as revision."
        )
    if any(words in error.complaint for words in NOT_ON_DISK):
        return GitError(f"{displayed} is not on the disk; revision: HEAD looks at it as committed.")
    return error


def _length(repository: Repository, name: str, arguments: VcsBlameArguments) -> str:
    """Return the number of lines, which git states in an error, as text."""
    try:
        _runs(repository, name, arguments.model_copy(update=BEHIND_ANY_END))
    except GitError as error:
        found = re.search(r"has (\d+) lines", error.message)
        if found is None:
            raise
        return found[1]
    return "more"


def _notes(
    arguments: VcsBlameArguments, context: ToolContext, runs: Sequence[Run]
) -> Iterator[str]:
    last = runs[-1].first + len(runs[-1].lines) - 1
    if arguments.end_line is not None and last < arguments.end_line:
        yield f"The file ends at line {last:,}."
    buffer = context.project.buffer(context.project.locate(arguments.path))
    if arguments.revision is None and buffer is not None:
        yield "Emacs holds changes of it that are not saved; the lines are those on the disk."


def _header(run: Run, name: str) -> str:
    if not run.origin.is_commit:
        return "not committed"
    moved = f" (in {shown_name(run.path)})" if run.path != name else ""
    return f"{run.origin.short} {run.origin.date} {run.origin.author}{moved}"


def _items(run: Run, *, crlf: bool) -> Iterator[tuple[str, Json]]:
    for number, line in enumerate(run.lines, run.first):
        text = line.removesuffix(b"\r") if crlf else line
        yield f"{number}\t{text.decode('utf-8', 'replace')}", None


def _facts(run: Run) -> JsonObject:
    return {
        "start": run.first,
        "end": run.first + len(run.lines) - 1,
        "hash": run.origin.hash,
        "author": run.origin.author,
        "date": run.origin.date,
        "subject": run.origin.subject,
        "path": shown_name(run.path),
    }


TOOL = VcsBlame()
