"""The rows of changes and checkpoints."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from efrit_budget.changes.change import IN_FORCE, Change, Kind, Role, State
from efrit_budget.changes.images import Image, hold
from efrit_budget.errors import Json, field_error

COLUMNS = (
    "SELECT *, (SELECT json_group_object(role, sha256) FROM held_images"
    " WHERE held_images.session_id = changes.session_id AND held_images.number = changes.number)"
    " AS images FROM changes WHERE session_id = ?"
)
FEW = 12
"""How many numbers an error lists."""


@dataclass(frozen=True)
class Beginning:
    """A file that is about to be changed, with its current content."""

    kind: Kind
    path: str
    file: str
    moved_to: str | None
    moved_file: str | None
    folders: tuple[str, ...]
    mode: int | None
    images: Mapping[Role, Image | None]


@dataclass(frozen=True)
class Ending:
    """A file that was changed, with its new content."""

    change: Change
    mode: int | None
    images: Mapping[Role, Image | None]
    added: int
    removed: int


@dataclass(frozen=True)
class Checkpoint:
    """A point of a session to return to."""

    number: int
    label: str
    after: int
    created: float

    def told(self) -> dict[str, Json]:
        """Return the checkpoint as lists show it."""
        return {
            "checkpoint": f"k{self.number}",
            "label": self.label,
            "after": self.after,
            "created": self.created,
        }


def _change(row: sqlite3.Row) -> Change:
    plain = ("number", "tool_use_id", "tool", "path", "file", "moved_to", "moved_file", "created")
    counts = ("mode_before", "mode_after", "added", "removed")
    return Change(
        kind=Kind(row["kind"]),
        state=State(row["state"]),
        folders=tuple(json.loads(row["folders"])),
        images=json.loads(row["images"]),
        **{name: row[name] for name in (*plain, *counts)},
    )


def every(connection: sqlite3.Connection, session_id: str, first: int = 1) -> list[Change]:
    """Return the changes of a session from a number on, oldest first."""
    rows = connection.execute(f"{COLUMNS} AND number >= ? ORDER BY number", (session_id, first))
    return [_change(row) for row in rows.fetchall()]


def of_use(connection: sqlite3.Connection, session_id: str, tool_use_id: str) -> list[Change]:
    """Return the changes of one tool call."""
    rows = connection.execute(
        f"{COLUMNS} AND tool_use_id = ? ORDER BY number", (session_id, tool_use_id)
    )
    return [_change(row) for row in rows.fetchall()]


def numbered(connection: sqlite3.Connection, session_id: str, number: int) -> Change:
    """Return the change with this number; raise if it does not exist."""
    row = connection.execute(f"{COLUMNS} AND number = ?", (session_id, number)).fetchone()
    if row is None:
        known = connection.execute(
            "SELECT number FROM changes WHERE session_id = ? ORDER BY number DESC LIMIT ?",
            (session_id, FEW),
        ).fetchall()
        listed = ", ".join(f"c{known['number']}" for known in known) or "none"
        raise field_error(
            "number", f"this session has no change c{number}; the latest are: {listed}"
        )
    return _change(row)


def add(
    connection: sqlite3.Connection,
    session_id: str,
    use: tuple[str, str],
    beginnings: Sequence[Beginning],
) -> list[int]:
    """Store changes that are about to be made by one use, its id and its tool."""
    return [_add(connection, session_id, use, beginning) for beginning in beginnings]


def _add(
    connection: sqlite3.Connection, session_id: str, use: tuple[str, str], beginning: Beginning
) -> int:
    number = _next_number(connection, "changes", session_id)
    connection.execute(
        "INSERT INTO changes (session_id, number, tool_use_id, tool, kind, path, file, moved_to,"
        " moved_file, folders, created, mode_before) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(session_id, number, *use, str(beginning.kind), beginning.path, beginning.file),
            *(beginning.moved_to, beginning.moved_file, json.dumps(beginning.folders)),
            *(time.time(), beginning.mode),
        ),
    )
    for role, image in beginning.images.items():
        hold(connection, session_id, number, role, image)
    return number


def _next_number(connection: sqlite3.Connection, counter: str, session_id: str) -> int:
    """Count one more; a number is given once, even where what had it is kept no more."""
    row = connection.execute(
        f"UPDATE sessions SET {counter} = {counter} + 1 WHERE id = ? RETURNING {counter}",  # noqa: S608
        (session_id,),
    ).fetchone()
    return int(row[0])


def end(connection: sqlite3.Connection, session_id: str, ending: Ending) -> None:
    """Store what a change left."""
    connection.execute(
        "UPDATE changes SET state = ?, mode_after = ?, added = ?, removed = ?"
        " WHERE session_id = ? AND number = ?",
        (
            *(State.DONE, ending.mode, ending.added, ending.removed),
            *(session_id, ending.change.number),
        ),
    )
    for role, image in ending.images.items():
        hold(connection, session_id, ending.change.number, role, image)


def set_state(connection: sqlite3.Connection, session_id: str, number: int, state: State) -> None:
    """Say how far a change is."""
    connection.execute(
        "UPDATE changes SET state = ? WHERE session_id = ? AND number = ?",
        (state, session_id, number),
    )


def later_in_force(connection: sqlite3.Connection, session_id: str, change: Change) -> list[Change]:
    """Return later changes of the same file that are still in effect."""
    return [
        later
        for later in every(connection, session_id, change.number + 1)
        if later.state in IN_FORCE and not set(later.paths).isdisjoint(change.paths)
    ]


def add_checkpoint(connection: sqlite3.Connection, session_id: str, label: str) -> Checkpoint:
    """Remember where a session stands."""
    row = connection.execute(
        "SELECT coalesce(max(number), 0) FROM changes WHERE session_id = ?", (session_id,)
    ).fetchone()
    number = _next_number(connection, "checkpoints", session_id)
    checkpoint = Checkpoint(number, label, int(row[0]), time.time())
    connection.execute(
        "INSERT INTO checkpoints (session_id, number, label, after, created)"
        " VALUES (?, ?, ?, ?, ?)",
        (session_id, checkpoint.number, checkpoint.label, checkpoint.after, checkpoint.created),
    )
    return checkpoint


def checkpoints(connection: sqlite3.Connection, session_id: str) -> list[Checkpoint]:
    """Return the checkpoints of a session, oldest first."""
    rows = connection.execute(
        "SELECT number, label, after, created FROM checkpoints WHERE session_id = ?"
        " ORDER BY number",
        (session_id,),
    )
    return [Checkpoint(**dict(row)) for row in rows.fetchall()]
