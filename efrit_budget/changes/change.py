"""A stored change: its kind, its file and the contents before and after."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from efrit_budget.errors import Json


class Kind(StrEnum):
    """The kinds of change to a file."""

    EDIT = "edit"
    CREATE = "create"
    DELETE = "delete"
    RENAME = "rename"


class State(StrEnum):
    """The progress of a change."""

    BEGUN = "begun"
    DONE = "done"
    UNDONE = "undone"
    ABANDONED = "abandoned"


class Role(StrEnum):
    """The role of a stored content in its change."""

    BEFORE = "before"
    AFTER = "after"
    TEXT_BEFORE = "text_before"
    """What a buffer held that was modified and not saved."""
    TEXT_AFTER = "text_after"


IN_FORCE = (State.BEGUN, State.DONE)
Contents = Mapping[str, str | None]
"""What paths hold, by their shown names: a content's name, or None where there is no file."""


@dataclass(frozen=True)
class Change:
    """One file changed by one tool call."""

    number: int
    tool_use_id: str
    tool: str
    kind: Kind
    path: str
    file: str
    moved_to: str | None
    moved_file: str | None
    folders: tuple[str, ...]
    """Those that were not there before and that its file needs, the innermost first."""
    state: State
    created: float
    mode_before: int | None
    mode_after: int | None
    added: int | None
    removed: int | None
    images: Mapping[str, str]

    @property
    def label(self) -> str:
        """The change as people name it, such as `c7`."""
        return f"c{self.number}"

    @property
    def place_after(self) -> str:
        """The path of the file after the change."""
        return self.path if self.moved_to is None else self.moved_to

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths that the change affects, as displayed."""
        return (self.path,) if self.moved_to is None else (self.path, self.moved_to)

    @property
    def before(self) -> Contents:
        """The content of each path before the change."""
        gone = dict.fromkeys(self.paths)
        return {**gone, self.path: self.images.get(Role.BEFORE)}

    @property
    def after(self) -> Contents:
        """The content of each path after the change."""
        gone = dict.fromkeys(self.paths)
        return {**gone, self.place_after: self.images.get(Role.AFTER)}

    @property
    def was_done(self) -> bool:
        """Return whether the content after the change is known."""
        return self.added is not None

    def told(self) -> dict[str, Json]:
        """Return the change as lists show it."""
        return {
            "number": self.number,
            "label": self.label,
            "tool_use_id": self.tool_use_id,
            "tool": self.tool,
            "kind": str(self.kind),
            "path": self.path,
            "to": self.moved_to,
            "state": str(self.state),
            "created": self.created,
            "added": self.added,
            "removed": self.removed,
        }
