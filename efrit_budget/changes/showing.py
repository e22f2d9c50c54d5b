"""A change as it is shown: what it changed, and what was changed since."""

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
    """What a change's file held before and after, and what an unsaved buffer did."""

    before: bytes | None
    after: bytes | None
    text_before: bytes | None
    text_after: bytes | None

    @classmethod
    def of(cls, connection: sqlite3.Connection, change: Change) -> Held:
        """As it is stored."""
        roles = (Role.BEFORE, Role.AFTER, Role.TEXT_BEFORE, Role.TEXT_AFTER)
        return cls(*(content(connection, change.images.get(role)) for role in roles))

    def compared(self) -> tuple[bytes | None, bytes | None]:
        """What is compared: the buffers where one was not saved, and else the files."""
        if self.text_before is None and self.text_after is None:
            return self.before, self.after
        old = as_buffer(self.before) if self.text_before is None else self.text_before
        new = as_buffer(self.after) if self.text_after is None else self.text_after
        return old, new


def shown(project: Project, change: Change, held: Held, most: int | None) -> dict[str, Json]:
    """A change with its diff, and what became of its file since; so much of each text."""
    texts = {
        "diff": diff(change, held),
        "since": _since(project, change, held),
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
    """What it changed; nothing where that was never told."""
    if not change.was_done:
        return ""
    old, new = held.compared()
    return unified(Side(change.path, old), Side(change.place_after, new))


def since(change: Change, held: Held, found: Mapping[str, Found | None]) -> str:
    """What became of its files since it was done, or since it was begun; often nothing."""
    now = {path: None if one is None else one.data for path, one in found.items()}
    if change.state is not State.DONE:
        left = {change.path: held.before}
    elif held.text_after is None or now[change.place_after] == held.after:
        left = {change.place_after: held.after}
    else:
        left = {change.place_after: held.text_after}
        now[change.place_after] = as_buffer(now[change.place_after])
    return "".join(unified(Side(path, left.get(path)), Side(path, now[path])) for path in now)


def _since(project: Project, change: Change, held: Held) -> str | None:
    """None where nothing became of it, or it is undone."""
    if change.state not in IN_FORCE:
        return None
    return since(change, held, found_at(project, places(project, change))) or None


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode()
