"""The tool `vcs_log`: lists commits."""

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Annotated

from pydantic import Field

from efrit_budget.errors import JsonObject
from efrit_budget.project.git.commits import FIELDS, FORMAT, Commit, commit_of
from efrit_budget.project.git.folder import GitError
from efrit_budget.project.git.names import name_from_root
from efrit_budget.project.git.patches import COUNT_OPTIONS, FileChange, changes_of_counts
from efrit_budget.project.git.repository import Repository
from efrit_budget.project.git.revisions import find_commits, log_range
from efrit_budget.project.paths import same_form
from efrit_budget.results.body import of_items
from efrit_budget.tools.base import Arguments, Hint, Outcome, ToolContext, answer, failure
from efrit_budget.tools.git_tool import GitTool
from efrit_budget.tools.layout.diffs import change_facts, change_line
from efrit_budget.tools.sizes import counted

BAD_REGEX = re.compile(r"(?m)^fatal: (command line, .{1,400})$")
"""Git's message about a bad pattern, which quotes the pattern and names the problem."""
REGEX_HELP = "author and grep are extended regexes: a backslash before ( or [ takes it as it is."
SHALLOW = "The clone is shallow: what is older is not here."
Text = Annotated[str, Field(min_length=1)]

LogEntry = tuple[Commit, Sequence[FileChange]]
"""A commit, with its changed files if requested."""


class VcsLogArguments(Arguments):
    """The arguments of `vcs_log`."""

    path: Text | None = None
    limit: Annotated[int, Field(ge=1, le=10_000)] = 30
    since: Annotated[Text, Field(description="2 weeks ago")] | None = None
    until: Text | None = None
    revision: Annotated[Text, Field(description="Default: HEAD; A..B")] | None = None
    author: Text | None = None
    grep: Text | None = None
    stat: bool = False


class VcsLog(GitTool):
    """Lists commits by day, newest first."""

    name = "vcs_log"
    description = (
        "Git log, newest first: hash, author, subject, refs, by day. A file is followed "
        "through renames. author, grep: regexes without case."
    )
    arguments = VcsLogArguments
    hint = Hint("commits", tokens_each=30, parameter="limit")

    def look(
        self, arguments: VcsLogArguments, context: ToolContext, repository: Repository
    ) -> Outcome:
        """Return the commits; read one more than `limit`, to know whether there are more."""
        name = arguments.path and name_from_root(context.project, repository, arguments.path)
        if find_commits(repository, ["HEAD"])[0] is None:
            return answer("There are no commits yet.", {"commits": []})
        given = arguments.revision
        commits = [] if given is None else log_range(repository, given)
        path = context.root / (name or "")
        is_folder = path.is_dir() and not path.is_symlink()
        options = _options(arguments, follows=bool(name) and not is_folder)
        try:
            finished = repository.run(
                "log", *options, *commits, paths=(name,) if name else repository.scope
            )
        except GitError as error:
            bad = BAD_REGEX.match(error.complaint)
            if bad is None:
                raise
            return failure(f"git cannot use this: {bad[1]}. {REGEX_HELP}")
        entries = list(_entries(finished.stdout))
        if not entries:
            return answer(_empty_outcome(arguments, repository), {"commits": []})
        return _outcome(arguments, entries, repository)

    def compress(self, arguments: VcsLogArguments, outcome: Outcome) -> str:
        """Return the number of commits, the dates and the first subjects."""
        commits = outcome.whole.item_data
        if not commits:
            return outcome.text
        place = f" of {same_form(arguments.path)}" if arguments.path else ""
        dates = sorted(commit["date"][:10] for commit in commits)
        subjects = "; ".join(f"{commit['short']} {commit['subject']}" for commit in commits)
        text = (
            f"Log{place}: {counted(len(commits), 'commit')}, {dates[0]} to {dates[-1]}. {subjects}"
        )
        return text if len(text) <= 500 else f"{text[:496]} ..."


def _options(arguments: VcsLogArguments, *, follows: bool) -> Iterator[str]:
    yield from (FORMAT, f"--max-count={arguments.limit + 1}", "--no-color", "--no-notes")
    yield from ("--regexp-ignore-case", "--extended-regexp", "--decorate=short")
    for option in ("since", "until", "author", "grep"):
        value = getattr(arguments, option)
        if value is not None:
            yield f"--{option}={value}"
    if follows:
        yield "--follow"
    if arguments.stat:
        yield from COUNT_OPTIONS
    else:
        yield from ("--no-patch", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty")


def _entries(printed: bytes) -> Iterator[LogEntry]:
    """Yield the commits in git's output, each with its changes up to the next hash."""
    parts = printed.split(b"\0")
    step = len(FIELDS)
    for start in range(0, len(parts) - step, step):
        first, *others = parts[start : start + step]
        changes = parts[start + step]
        if start + 2 * step < len(parts):
            changes = changes.rpartition(b"\n")[0]
        commit = commit_of([first.rpartition(b"\n")[2], *others])
        yield commit, changes_of_counts(changes) if changes.strip() else ()


def _outcome(
    arguments: VcsLogArguments, entries: Sequence[LogEntry], repository: Repository
) -> Outcome:
    visible = entries[: arguments.limit]
    groups = [
        (day, [(_lines(*entry), _facts(*entry)) for entry in of_day])
        for day, of_day in groupby(visible, lambda entry: entry[0].date)
    ]
    notes = []
    if len(entries) > arguments.limit:
        notes.append(f"There are more; limit is {arguments.limit:,}.")
    elif repository.folder.is_shallow:
        notes.append(SHALLOW)
    return Outcome(body=of_items("commits", groups), notes=tuple(notes))


def _lines(commit: Commit, changes: Sequence[FileChange]) -> str:
    """Return a commit's line and one line per changed file."""
    refs = f" ({commit.refs})" if commit.refs else ""
    line = f"{commit.short} {commit.author}: {commit.subject}{refs}"
    return "\n".join([line, *(f"  {change_line(change)}" for change in changes)])


def _facts(commit: Commit, changes: Sequence[FileChange]) -> JsonObject:
    facts = commit.facts
    if commit.refs:
        facts["refs"] = commit.refs.split(", ")
    if changes:
        facts["files"] = [change_facts(change) for change in changes]
    return facts


def _empty_outcome(arguments: VcsLogArguments, repository: Repository) -> str:
    """Return a sentence that says that no commit fits the arguments, and names them."""
    filters = []
    if arguments.path is not None:
        filters.append(f"changed {same_form(arguments.path)}")
    if arguments.since is not None:
        filters.append(f"is since {_understood_time('since', arguments.since, repository)}")
    if arguments.until is not None:
        filters.append(f"is until {_understood_time('until', arguments.until, repository)}")
    if arguments.author is not None:
        filters.append(f"has an author like {arguments.author!r}")
    if arguments.grep is not None:
        filters.append(f"says {arguments.grep!r}")
    return (
        f"No commit here {' and '.join(filters)}."
        if filters
        else "No commit changed anything here."
    )


def _understood_time(option: str, words: str, repository: Repository) -> str:
    """Return the time that git understands by `words`: git accepts any words as a time."""
    printed = repository.run("rev-parse", f"--{option}={words}").stdout.decode().strip()
    seconds = printed.partition("-age=")[2]
    if not seconds.isdigit():
        return repr(words)
    return f"{datetime.fromtimestamp(int(seconds), UTC):%Y-%m-%d %H:%M} UTC, as git reads {words!r}"


TOOL = VcsLog()
