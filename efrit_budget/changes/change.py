"""A stored change: its kind, its file and the contents before and after."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from efrit_budget.errors import EfritError, Json


class ChangedSinceError(EfritError):
    """The file of a change was changed later, so that undoing would lose later work."""

    code = -32007


class ChangeError(EfritError):
    """A change cannot be stored or undone; the message says why and what to do."""

    code = -32008


class ChangeKind(StrEnum):
    """The kinds of change to a file."""

    EDIT = "edit"
    CREATE = "create"
    DELETE = "delete"
    RENAME = "rename"


class ChangeState(StrEnum):
    """The state of a change: recorded before the edit, done, undone, or not made at all."""

    BEGUN = "begun"
    DONE = "done"
    UNDONE = "undone"
    ABANDONED = "abandoned"


class Role(StrEnum):
    """The role of a stored content in its change."""

    BEFORE = "before"
    AFTER = "after"
    TEXT_BEFORE = "text_before"
    """The text of the file's buffer before the change, if the buffer was modified and not saved."""
    TEXT_AFTER = "text_after"
    """The text of the file's buffer after the change, if the buffer was not saved."""


IN_FORCE = (ChangeState.BEGUN, ChangeState.DONE)
Contents = Mapping[str, str | None]
"""Maps each path to the hash of its content, or to None if it has no file."""


@dataclass(frozen=True)
class Change:
    """One file changed by one tool call."""

    number: int
    tool_use_id: str
    tool: str
    kind: ChangeKind
    path: str
    file: str
    moved_to: str | None
    moved_file: str | None
    folders: tuple[str, ...]
    """The folders that the change created for its file, innermost first."""
    state: ChangeState
    to_report: bool
    """True if the person undid the change, or made it again, and the model has not been told."""
    created: float
    mode_before: int | None
    mode_after: int | None
    added: int | None
    removed: int | None
    hashes: Mapping[str, str]
    """The hashes of the change's contents, by their roles."""

    @property
    def label(self) -> str:
        """The change as people name it, such as `c7`."""
        return f"c{self.number}"

    @property
    def path_after(self) -> str:
        """The path of the file after the change."""
        return self.path if self.moved_to is None else self.moved_to

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths that the change affects, as displayed."""
        return (self.path,) if self.moved_to is None else (self.path, self.moved_to)

    @property
    def before(self) -> Contents:
        """The hash of each path's content before the change, None for a path without a file."""
        gone = dict.fromkeys(self.paths)
        return {**gone, self.path: self.hashes.get(Role.BEFORE)}

    @property
    def after(self) -> Contents:
        """The hash of each path's content after the change, None for a path without a file."""
        gone = dict.fromkeys(self.paths)
        return {**gone, self.path_after: self.hashes.get(Role.AFTER)}

    @property
    def before_facts(self) -> tuple[Json, ...]:
        """The facts by which a repeated `changes/begin` is recognized as the same change."""
        hashes = (self.hashes.get(role) for role in (Role.BEFORE, Role.TEXT_BEFORE))
        return (self.kind, self.path, self.moved_to, self.mode_before, *hashes)

    def summary(self) -> dict[str, Json]:
        """Return the facts of the change that lists show."""
        return {
            "number": self.number,
            "label": self.label,
            "tool_use_id": self.tool_use_id,
            "tool": self.tool,
            "kind": str(self.kind),
            "path": self.path,
            "to": self.moved_to,
            "state": str(self.state),
            "to_report": self.to_report,
            "created": self.created,
            "added": self.added,
            "removed": self.removed,
        }
