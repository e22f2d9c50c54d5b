"""All connections of a database are closed with it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from tests.databases import open_database


def test_a_closed_database_leaves_no_connection_open(tmp_path: Path) -> None:
    database = open_database(tmp_path / "db.sqlite")
    with database.reading() as at_work:
        database.close()
        at_work.execute("SELECT 1")
    with database.reading() as late:
        late.execute("SELECT 1")
    for connection in (at_work, late):
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            connection.execute("SELECT 1")
