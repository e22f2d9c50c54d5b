"""Present a change: its diff, and what happened to the file since."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass

from efrit_budget.changes.change import IN_FORCE, Change, Role, State
from efrit_budget.changes.diffs import Side, as_buffer, unified
from efrit_budget.changes.disk import Found
from efrit_budget.changes.images import content
from efrit_budget.changes.standing import found_at, places
from efrit_budget.errors import Json
from efrit_budget.project.project import Project


@dataclass(frozen=True)
class Held:
    """The contents of a change's file and of its buffer, before and after."""

    before: bytes | None
    after: bytes | None
    text_before: bytes | None
    text_after: bytes | None

    @classmethod
    def of(cls, connection: sqlite3.Connection, change: Change) -> Held:
        """Return the stored contents of a change."""
        roles = (Role.BEFORE, Role.AFTER, Role.TEXT_BEFORE, Role.TEXT_AFTER)
        return cls(*(content(connection, change.images.get(role)) for role in roles))

    def compared(self) -> tuple[bytes | None, bytes | None]:
        """Return the contents to compare: the unsaved buffers, else the files."""
        if self.text_before is None and self.text_after is None:
            return self.before, self.after
        old = as_buffer(self.before) if self.text_before is None else self.text_before
        new = as_buffer(self.after) if self.text_after is None else self.text_after
        return old, new


def shown(project: Project, change: Change, held: Held, most: int | None) -> dict[str, Json]:
    """Return a change with its diff and later differences, each text cut to a length."""
    texts = {
        "diff": diff(change, held),
        "since": _file_diff_since(project, change, held),
        "buffer_text_before": _text(held.text_before),
        "buffer_text_after": _text(held.text_after),
    }
    return {
        **change.told(),
        "file": change.file,
        "before": change.images.get(Role.BEFORE),
        "after": change.images.get(Role.AFTER),
        **{name: None if text is None else text[:most] for name, text in texts.items()},
        "cut": most is not None and any(len(text or "") > most for text in texts.values()),
    }


def diff(change: Change, held: Held) -> str:
    """Return the diff of a change, empty if its end was never recorded."""
    if not change.was_done:
        return ""
    old, new = held.compared()
    return unified(Side(change.path, old), Side(change.place_after, new))


def since(change: Change, held: Held, found: Mapping[str, Found | None]) -> str:
    """Return what happened to the file since the change, often an empty text."""
    now = {path: None if one is None else one.data for path, one in found.items()}
    if change.state is not State.DONE:
        before = {change.path: held.before}
    elif held.text_after is None or now[change.place_after] == held.after:
        before = {change.place_after: held.after}
    else:
        before = {change.place_after: held.text_after}
        now[change.place_after] = as_buffer(now[change.place_after])
    return "".join(unified(Side(path, before.get(path)), Side(path, now[path])) for path in now)


def _file_diff_since(project: Project, change: Change, held: Held) -> str | None:
    """Return the later difference, or None if there is none or the change is undone."""
    if change.state not in IN_FORCE:
        return None
    return since(change, held, found_at(project, places(project, change))) or None


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode()
