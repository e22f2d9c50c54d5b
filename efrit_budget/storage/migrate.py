"""Migrate a database to the newest schema, one numbered file at a time."""

import sqlite3
from contextlib import closing
from functools import cache
from pathlib import Path

from efrit_budget.errors import StorageError

FOLDER = Path(__file__).parent / "migrations"
APPLICATION_ID = 0x65667262
"""The mark in the file's header that tells our databases from those of other programs."""

FOREIGN = "the database belongs to another program; name another file with --db, or move it away"


def migrations() -> list[tuple[int, Path]]:
    """Return the migrations in order: the schema version that each makes, and its file."""
    return [(int(file.name.partition("_")[0]), file) for file in sorted(FOLDER.glob("*.sql"))]


def newest() -> int:
    """Return the newest schema version."""
    return migrations()[-1][0]


def version(connection: sqlite3.Connection) -> int:
    """Return the schema version of the database."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def migrate(connection: sqlite3.Connection) -> None:
    """Apply the missing migrations; raise if the database is foreign, too new or incomplete."""
    found = version(connection)
    _require_own(connection, found)
    if found > newest():
        raise StorageError(
            f"the database has schema {found}, and this efrit-budget knows up to {newest()}: "
            "upgrade efrit-budget, or name another database with --db"
        )
    _require_whole(connection)
    for number, file in migrations():
        if number > found:
            _apply(connection, number, file)


def _require_own(connection: sqlite3.Connection, found: int) -> None:
    """Raise if another program made the database."""
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    # Read last: another sidecar may be making the tables and the mark, both at once, just now.
    mark = application_id(connection)
    if mark != APPLICATION_ID and (mark or found or tables):
        raise StorageError(FOREIGN)


def application_id(connection: sqlite3.Connection) -> int:
    """Return the number by which the program that made the database marked it; 0 for none."""
    return int(connection.execute("PRAGMA application_id").fetchone()[0])


def _require_whole(connection: sqlite3.Connection) -> None:
    """Raise if tables, indices or triggers of the schema are missing."""
    connection.execute("BEGIN DEFERRED")
    try:
        missing = missing_parts(connection)
    finally:
        connection.execute("COMMIT")
    if missing:
        raise StorageError(
            f"the database has lost {', '.join(missing)}; restore it from a backup, or move it "
            "away to begin anew"
        )


def missing_parts(connection: sqlite3.Connection) -> list[str]:
    """Return the missing tables, views, indices and triggers, such as "table calls"."""
    return sorted(_parts_of(version(connection)) - _parts(connection))


@cache
def _parts_of(schema: int) -> frozenset[str]:
    """Return the tables, views, indices and triggers of a database with this schema version."""
    with closing(sqlite3.connect(":memory:")) as whole:
        for number, file in migrations():
            if number <= schema:
                _run(whole, file)
        return _parts(whole)


def _parts(connection: sqlite3.Connection) -> frozenset[str]:
    """Return the database's tables, views, indices and triggers, without SQLite's own."""
    rows = connection.execute(
        "SELECT type || ' ' || name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'"
    )
    return frozenset(row[0] for row in rows)


def _run(connection: sqlite3.Connection, file: Path) -> None:
    for statement in _statements(file.read_text(encoding="utf-8")):
        connection.execute(statement)


def _apply(connection: sqlite3.Connection, number: int, file: Path) -> None:
    """Run one migration in a transaction, unless another sidecar has run it meanwhile."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        if version(connection) < number:
            _run(connection, file)
            connection.execute(f"PRAGMA user_version = {number:d}")
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID:d}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _statements(script: str) -> list[str]:
    """Split a script into statements, because `executescript` would commit."""
    statements, pending = [], ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            statements.append(pending)
            pending = ""
    return [*statements, pending] if pending.strip() else statements
