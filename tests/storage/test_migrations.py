"""Databases of older versions, migrated."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from efrit_budget.conversation.windows import calibration_of, load
from efrit_budget.storage import migrate
from efrit_budget.storage.database import Database

BEFORE_FAMILIES = 10


def old_database(file: Path, schema: int) -> sqlite3.Connection:
    """Make an empty database of an older schema; return a connection to it."""
    connection = sqlite3.connect(file)
    for number, migration in migrate.migrations():
        if number <= schema:
            connection.executescript(migration.read_text(encoding="utf-8"))
    connection.execute(f"PRAGMA user_version = {schema}")
    connection.execute(f"PRAGMA application_id = {migrate.APPLICATION_ID}")
    return connection


def test_what_was_learnt_of_claude_s_models_is_kept_and_windows_are_of_its_family(
    tmp_path: Path,
) -> None:
    file = tmp_path / "old.db"
    with closing(old_database(file, BEFORE_FAMILIES)) as connection, connection:
        connection.execute(
            "INSERT INTO sessions (id, root, limits, created, touched)"
            " VALUES ('one', '/', '', 0, 0)"
        )
        connection.execute("INSERT INTO windows (session_id, turn, model) VALUES ('one', 3, 'm')")
        connection.executemany(
            "INSERT INTO calibration (model, factor, samples, error, frame)"
            " VALUES (?, ?, 9, 0, 20)",
            [("claude-sonnet-5-5", 1.23), ("gpt-5", 0.9)],
        )
    with closing(Database(file, 5000)) as database, database.reading() as connection:
        assert calibration_of(connection, "claude-sonnet-5-5", 1.0).factor == 1.23
        assert calibration_of(connection, "claude-sonnet-5-5", 1.0).frame == 20
        assert calibration_of(connection, "gpt-5", 1.0).samples == 0
        assert load(connection, "one").family == "claude"
