"""The shrinking of the database file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from efrit_budget.storage import space
from efrit_budget.storage.database import Database
from tests.databases import open_database


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """A database with mostly free pages."""
    with closing(open_database(tmp_path / "db.sqlite")) as made:
        with made.writing() as connection:
            connection.execute("CREATE TABLE filling (data BLOB)")
            connection.execute("INSERT INTO filling VALUES (randomblob(4000000))")
        with made.writing() as connection:
            connection.execute("DROP TABLE filling")
        yield made


def _free(database: Database) -> int:
    with database.reading() as connection:
        return space.space_of(connection).free


def test_free_pages_are_given_back_many_at_a_time_and_the_last_ones_too(
    database: Database,
) -> None:
    free = _free(database)
    assert free > 4 * space.PAGES
    while free:
        assert space.give_back(database)
        assert _free(database) == max(free - space.PAGES, 0)
        free = _free(database)
    assert not space.give_back(database)


def test_what_was_given_back_is_cut_from_the_file(database: Database) -> None:
    before = database.path.stat().st_size
    while space.give_back(database):
        pass
    assert space.cut(database)
    assert database.path.stat().st_size < before / 4
