"""Ask git for differences between versions of files."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

from efrit_budget.project.git.patches import (
    COUNT_OPTIONS,
    PATCH_OPTIONS,
    FileChange,
    changes_of_counts,
    changes_of_patch,
    whole_lines,
)
from efrit_budget.project.git.repository import MOST_BYTES, Repository
from efrit_budget.project.processes.run import Finished

CONTEXT_LINES = 3
RENAMES_SKIPPED = b"rename detection was skipped"


@dataclass(frozen=True)
class Comparison:
    """A comparison by git: a command with commits and paths."""

    command: Sequence[str]
    commits: Sequence[str] = ()
    paths: Sequence[str] = ()
    context: int = CONTEXT_LINES
    fields: int = 0
    """The number of fields, each ending in NUL, that the command prints before the changes."""
    combined_status: str = "U"
    """The status of a file that differs from several versions at once."""
    reads_files: bool = False
    """Whether files in the working tree are compared."""


@dataclass(frozen=True)
class Difference:
    """The changed files (`changes`), and those whose hunks were read (`patched`)."""

    changes: Sequence[FileChange]
    patched: Sequence[FileChange] = ()
    cut: bool = False
    """Whether hunks were left out because the output was longer than MOST_BYTES."""
    fields: Sequence[bytes] = ()
    unfiltered: frozenset[str] = frozenset()
    """Files that git would filter through a program before comparing; the program was not run."""
    renames_skipped: bool = False

    @property
    def notes(self) -> tuple[str, ...]:
        """Return notes for the model about the difference."""
        most = MOST_BYTES // (1024 * 1024)
        cut = f"Only the first {most} MiB of hunks were taken; give a path for others."
        skipped = "There are too many files for git to look for every rename."
        notes = {cut: self.cut, skipped: self.renames_skipped}
        return tuple(note for note, applies in notes.items() if applies)


def count_changes(repository: Repository, comparison: Comparison) -> Difference:
    """Return the changed files with the numbers of changed lines, without hunks."""
    finished = _run(repository, comparison, COUNT_OPTIONS)
    *fields, printed = finished.stdout.split(b"\0", comparison.fields)
    found = Difference(changes_of_counts(printed), fields=fields)
    return _complete(found, repository, comparison, finished)


def read_patch(repository: Repository, comparison: Comparison) -> Difference:
    """Return the changed files with hunks; files beyond MOST_BYTES of output have only counts."""
    options = [*PATCH_OPTIONS, f"--unified={comparison.context}"]
    finished = _run(repository, comparison, options)
    *fields, printed = finished.stdout.split(b"\0", comparison.fields)
    if finished.cut:
        changes = changes_of_patch(whole_lines(printed), comparison.combined_status)
        return replace(count_changes(repository, comparison), patched=changes, cut=True)
    changes = changes_of_patch(printed, comparison.combined_status)
    found = Difference(changes, changes, fields=fields)
    return _complete(found, repository, comparison, finished)


def _run(repository: Repository, comparison: Comparison, options: Sequence[str]) -> Finished:
    paths = comparison.paths or repository.scope
    asked = [*comparison.command, *options, "--end-of-options", *comparison.commits]
    return repository.run(*asked, paths=paths)


def _complete(
    found: Difference, repository: Repository, comparison: Comparison, finished: Finished
) -> Difference:
    on_disk = [change.path for change in found.changes if change.status in "MT"]
    return replace(
        found,
        renames_skipped=RENAMES_SKIPPED in finished.stderr,
        unfiltered=unfiltered(repository, on_disk) if comparison.reads_files else frozenset(),
    )


def unfiltered(repository: Repository, names: Sequence[str]) -> frozenset[str]:
    """Return the files whose attributes name a filter program, which is never run."""
    filters = {setting.split(".", 1)[1].rpartition(".")[0] for setting in repository.filters}
    if not filters or not names:
        return frozenset()
    given = b"".join(os.fsencode(name) + b"\0" for name in names)
    finished = repository.run("check-attr", "-z", "--stdin", "filter", given=given)
    told = finished.stdout.split(b"\0")
    return frozenset(
        os.fsdecode(name)
        for name, value in zip(told[::3], told[2::3], strict=False)
        if os.fsdecode(value) in filters
    )
