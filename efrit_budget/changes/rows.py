"""The tables `changes`, `images`, `held_images` and `checkpoints`. All their SQL stands here."""

import hashlib
import json
import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from sqlite3 import Connection, Row

from efrit_budget.changes.change import Change, ChangeError, ChangeKind, ChangeState, Role
from efrit_budget.errors import Json, JsonObject, field_error
from efrit_budget.sessions.rows import next_number

COMPRESSION_LEVEL = 1
COLUMNS = (
    "SELECT *, (SELECT json_group_object(role, sha256) FROM held_images"
    " WHERE held_images.session_id = changes.session_id AND held_images.number = changes.number)"
    " AS images FROM changes WHERE session_id = ?"
)
LISTED = 12
"""The most changes that an error lists."""


@dataclass(frozen=True)
class PackedContent:
    """A content prepared for storage, outside of any transaction that writes."""

    sha256: str
    size: int
    data: bytes
    is_compressed: bool
    """False if the content was stored already, so that `data` was left uncompressed."""


@dataclass(frozen=True)
class Beginning:
    """A change before it is made, with the content of its file."""

    kind: ChangeKind
    path: str
    file: str
    moved_to: str | None
    moved_file: str | None
    folders: tuple[str, ...]
    mode: int | None
    contents: Mapping[Role, PackedContent | None]

    @property
    def before_facts(self) -> tuple[Json, ...]:
        """The facts by which a stored change is recognized as this same change."""
        contents = (self.contents[role] for role in (Role.BEFORE, Role.TEXT_BEFORE))
        hashes = (None if content is None else content.sha256 for content in contents)
        return (self.kind, self.path, self.moved_to, self.mode, *hashes)


@dataclass(frozen=True)
class Ending:
    """A change that was made, with the new content of its file."""

    change: Change
    mode: int | None
    contents: Mapping[Role, PackedContent | None]
    added: int
    removed: int


@dataclass(frozen=True)
class Checkpoint:
    """A point of a session after which all changes can be undone."""

    number: int
    label: str
    after: int
    """The number of the latest change before the checkpoint; 0 if there is none."""
    created: float

    def summary(self) -> JsonObject:
        """Return the facts of the checkpoint that lists show."""
        facts = asdict(self)
        return {"checkpoint": f"k{facts.pop('number')}", **facts}


def _change(row: Row) -> Change:
    plain = ("number", "tool_use_id", "tool", "path", "file", "moved_to", "moved_file", "created")
    counts = ("mode_before", "mode_after", "added", "removed")
    return Change(
        kind=ChangeKind(row["kind"]),
        state=ChangeState(row["state"]),
        to_report=bool(row["to_report"]),
        folders=tuple(json.loads(row["folders"])),
        hashes=json.loads(row["images"]),
        **{name: row[name] for name in (*plain, *counts)},
    )


def list_from(connection: Connection, session_id: str, first: int = 1) -> list[Change]:
    """Return the changes of a session from the number `first` on, oldest first."""
    rows = connection.execute(f"{COLUMNS} AND number >= ? ORDER BY number", (session_id, first))
    return [_change(row) for row in rows.fetchall()]


def list_of_call(connection: Connection, session_id: str, tool_use_id: str) -> list[Change]:
    """Return the changes of one tool call, oldest first."""
    statement = f"{COLUMNS} AND tool_use_id = ? ORDER BY number"
    rows = connection.execute(statement, (session_id, tool_use_id))
    return [_change(row) for row in rows.fetchall()]


def get(connection: Connection, session_id: str, number: int) -> Change:
    """Return the change with this number; raise if it does not exist."""
    row = connection.execute(f"{COLUMNS} AND number = ?", (session_id, number)).fetchone()
    if row is None:
        known = connection.execute(
            "SELECT number FROM changes WHERE session_id = ? ORDER BY number DESC LIMIT ?",
            (session_id, LISTED),
        ).fetchall()
        listed = ", ".join(f"c{known['number']}" for known in known) or "none"
        raise field_error(
            "number", f"this session has no change c{number}; the latest are: {listed}"
        )
    return _change(row)


def insert(
    connection: Connection,
    session_id: str,
    call: tuple[str, str],
    beginnings: Sequence[Beginning],
) -> None:
    """Insert the changes that a call, given by its id and its tool, is about to make."""
    for one in beginnings:
        number = next_number(connection, session_id, "changes")
        connection.execute(
            "INSERT INTO changes (session_id, number, tool_use_id, tool, kind, path, file,"
            " moved_to, moved_file, folders, created, mode_before)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(session_id, number, *call, str(one.kind), one.path, one.file),
                *(one.moved_to, one.moved_file, json.dumps(one.folders), time.time(), one.mode),
            ),
        )
        _insert_contents(connection, session_id, number, one.contents)


def end(connection: Connection, session_id: str, ending: Ending) -> None:
    """Store that a change was made, with its line counts and with contents and mode after it."""
    connection.execute(
        "UPDATE changes SET state = ?, mode_after = ?, added = ?, removed = ?"
        " WHERE session_id = ? AND number = ?",
        (
            *(ChangeState.DONE, ending.mode, ending.added, ending.removed),
            *(session_id, ending.change.number),
        ),
    )
    _insert_contents(connection, session_id, ending.change.number, ending.contents)


def set_state(connection: Connection, session_id: str, number: int, state: ChangeState) -> None:
    """Set the state of a change."""
    connection.execute(
        "UPDATE changes SET state = ? WHERE session_id = ? AND number = ?",
        (state, session_id, number),
    )


def set_restored(
    connection: Connection, session_id: str, number: int, state: ChangeState, *, by_person: bool
) -> None:
    """Set the state of a change that was undone or made again.

    If the person did it, the model is to be told, unless that takes back what it was not told.
    """
    connection.execute(
        "UPDATE changes SET state = ?, to_report = CASE WHEN ? THEN 1 - to_report ELSE 0 END"
        " WHERE session_id = ? AND number = ?",
        (state, by_person, session_id, number),
    )


def set_reported(connection: Connection, session_id: str, numbers: Sequence[int]) -> None:
    """Store that the model was told what the person did with these changes."""
    connection.executemany(
        "UPDATE changes SET to_report = 0 WHERE session_id = ? AND number = ?",
        ((session_id, number) for number in numbers),
    )


def insert_checkpoint(connection: Connection, session_id: str, label: str) -> Checkpoint:
    """Insert a checkpoint after the latest change."""
    row = connection.execute(
        "SELECT coalesce(max(number), 0) FROM changes WHERE session_id = ?", (session_id,)
    ).fetchone()
    number = next_number(connection, session_id, "checkpoints")
    checkpoint = Checkpoint(number, label, int(row[0]), time.time())
    connection.execute(
        "INSERT INTO checkpoints (session_id, number, label, after, created)"
        " VALUES (?, ?, ?, ?, ?)",
        (session_id, *asdict(checkpoint).values()),
    )
    return checkpoint


def list_checkpoints(connection: Connection, session_id: str) -> list[Checkpoint]:
    """Return the checkpoints of a session, oldest first."""
    rows = connection.execute(
        "SELECT number, label, after, created FROM checkpoints WHERE session_id = ?"
        " ORDER BY number",
        (session_id,),
    )
    return [Checkpoint(**dict(row)) for row in rows.fetchall()]


# Contents


def digest(data: bytes) -> str:
    """Return the hash that names a content."""
    return hashlib.sha256(data).hexdigest()


def pack(connection: Connection, data: bytes | None) -> PackedContent | None:
    """Return a content prepared for storage, compressed if it is new; None for None."""
    if data is None:
        return None
    sha256 = digest(data)
    if _is_stored(connection, sha256):
        return PackedContent(sha256, len(data), data, is_compressed=False)
    compressed = zlib.compress(data, COMPRESSION_LEVEL)
    return PackedContent(sha256, len(data), compressed, is_compressed=True)


def _is_stored(connection: Connection, sha256: str) -> bool:
    row = connection.execute("SELECT 1 FROM images WHERE sha256 = ?", (sha256,)).fetchone()
    return row is not None


def _insert_contents(
    connection: Connection,
    session_id: str,
    number: int,
    contents: Mapping[Role, PackedContent | None],
) -> None:
    """Store the contents of a change; a content that another change has is not stored again."""
    for role, packed in contents.items():
        if packed is None:
            continue
        if not _is_stored(connection, packed.sha256):
            data = packed.data
            if not packed.is_compressed:
                data = zlib.compress(data, COMPRESSION_LEVEL)
            connection.execute(
                "INSERT INTO images (sha256, size, data) VALUES (?, ?, ?)",
                (packed.sha256, packed.size, data),
            )
        connection.execute(
            "INSERT INTO held_images (session_id, number, role, sha256) VALUES (?, ?, ?, ?)",
            (session_id, number, role, packed.sha256),
        )


def get_content(connection: Connection, sha256: str | None) -> bytes | None:
    """Return the content with this hash, None for None; raise if the content was deleted."""
    if sha256 is None:
        return None
    row = connection.execute("SELECT data FROM images WHERE sha256 = ?", (sha256,)).fetchone()
    if row is None:
        raise ChangeError("the content of the file is no longer stored, as the session was purged")
    return zlib.decompress(row["data"])


# Deleting a session's contents


def delete_some(connection: Connection, session_id: str) -> int:
    """Delete up to five changes of a session; return the number of deleted changes.

    Few at once, as each may have large contents; a trigger deletes contents that no change has.
    """
    return connection.execute(
        "DELETE FROM changes WHERE session_id = ?1 AND number IN"
        " (SELECT number FROM changes WHERE session_id = ?1 LIMIT 5)",
        (session_id,),
    ).rowcount


def delete_checkpoints(connection: Connection, session_id: str) -> None:
    """Delete the checkpoints of a session."""
    connection.execute("DELETE FROM checkpoints WHERE session_id = ?", (session_id,))
