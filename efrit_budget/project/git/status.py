"""Read the state of the working tree from git."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from efrit_budget.project.git.diff import unfiltered
from efrit_budget.project.git.repository import Repository

COMMAND = (
    *("status", "--porcelain=v2", "-z", "--branch", "--show-stash", "--find-renames"),
    *("--untracked-files=normal", "--ignored=no", "--ignore-submodules=dirty"),
)


class State(StrEnum):
    """The ways in which a file of the working tree differs from the commit or the index."""

    CONFLICT = "conflict"
    STAGED = "staged"
    NOT_STAGED = "not staged"
    UNTRACKED = "untracked"


@dataclass(frozen=True)
class StatusEntry:
    """A file in one state; a file that changed again after staging has two entries."""

    state: State
    status: str
    """The letter by which git names the change; two for a conflict; empty if untracked."""
    path: str
    old_path: str | None = None
    is_submodule: bool = False
    is_unfiltered: bool = False
    """Whether git would have filtered the file through a program, which was not run."""


@dataclass(frozen=True)
class TreeState:
    """The state of the working tree with its changed files."""

    facts: dict[str, str]
    entries: list[StatusEntry]
    cut: bool

    @property
    def branch(self) -> str | None:
        """The branch, or None if HEAD is detached."""
        name = self.facts.get("branch.head", "(detached)")
        return None if name == "(detached)" else name

    @property
    def commit(self) -> str | None:
        """The hash of HEAD, or None before the first commit."""
        oid = self.facts.get("branch.oid", "(initial)")
        return None if oid == "(initial)" else oid

    @property
    def ahead_behind(self) -> tuple[int, int]:
        """The number of commits ahead of and behind the upstream."""
        ahead, _, behind = self.facts.get("branch.ab", "+0 -0").partition(" ")
        return abs(int(ahead)), abs(int(behind))


def read_status(repository: Repository) -> TreeState:
    """Return the state of the working tree below the project's root."""
    finished = repository.run(*COMMAND, paths=repository.scope)
    records = iter(finished.stdout.split(b"\0")[:-1])
    facts: dict[str, str] = {}
    entries: list[StatusEntry] = []
    for record in records:
        if record.startswith(b"# "):
            key, _, value = record[2:].decode("utf-8", "replace").partition(" ")
            facts[key] = value
        else:
            entries += _entries(record, records, repository.prefix)
    return TreeState(facts, _with_filters(repository, entries), finished.cut)


def _entries(record: bytes, others: Iterator[bytes], prefix: str) -> Iterator[StatusEntry]:
    """Yield the entries of a record; `others` yields the old name of a renamed file."""
    kind = record[:1]
    if kind == b"?":
        yield StatusEntry(State.UNTRACKED, "", _name(record[2:], prefix))
        return
    fields = record.split(b" ", {b"1": 8, b"2": 9}.get(kind, 10))
    status, name = fields[1].decode(), _name(fields[-1], prefix)
    old = _name(next(others, b""), prefix) if kind == b"2" else None
    is_submodule = fields[2].startswith(b"S")
    if kind == b"u":
        yield StatusEntry(State.CONFLICT, status, name, is_submodule=is_submodule)
        return
    for state, letter in zip((State.STAGED, State.NOT_STAGED), status, strict=True):
        if letter != ".":
            renamed = old if letter in "RC" else None
            yield StatusEntry(state, letter, name, renamed, is_submodule)


def _name(printed: bytes, prefix: str) -> str:
    """Return the path from the project's root for a path that git printed."""
    return os.fsdecode(printed).removeprefix(prefix) or "./"


def _with_filters(repository: Repository, entries: list[StatusEntry]) -> list[StatusEntry]:
    changed = [e.path for e in entries if (e.state, e.status) == (State.NOT_STAGED, "M")]
    filtered = unfiltered(repository, changed)
    if not filtered:
        return entries
    return [
        replace(e, is_unfiltered=e.state is State.NOT_STAGED and e.path in filtered)
        for e in entries
    ]
