"""Measure and shrink the database file."""

import sqlite3
from dataclasses import dataclass

from efrit_budget.storage.database import SHRINKING, Database

INCREMENTAL = 2
"""SQLite's number for files that can shrink a part at a time."""
PAGES = 200
"""The number of pages given back at a time."""
CUT_WITHIN_MS = 50
"""How long to wait for the journal while other writers wait."""
WORTH_PAGES, WORTH_SHARE = 256, 5
"""Shrinking is worthwhile above this many free pages, and above one part in so many."""


@dataclass(frozen=True)
class Space:
    """The size of a database."""

    pages: int
    free: int
    page_size: int
    can_shrink: bool
    """Whether free pages can be given back; a file of an older version is rewritten once first."""

    @property
    def size(self) -> int:
        """The size of the file in bytes."""
        return self.pages * self.page_size

    @property
    def used(self) -> int:
        """The bytes in use."""
        return (self.pages - self.free) * self.page_size

    @property
    def is_worth_shrinking(self) -> bool:
        """Return whether much of the file is free."""
        return self.free > max(WORTH_PAGES, self.pages // WORTH_SHARE)


def space_of(connection: sqlite3.Connection) -> Space:
    """Return how large the database is."""
    pages, free, page_size, mode = (
        int(connection.execute(f"PRAGMA {name}").fetchone()[0])
        for name in ("page_count", "freelist_count", "page_size", "auto_vacuum")
    )
    return Space(pages, free, page_size, mode == INCREMENTAL)


def give_back(database: Database) -> bool:
    """Give up to `PAGES` free pages back to the disk; return false where there are none."""
    with database.alone() as connection:
        if not space_of(connection).free:
            return False
        # A script is run to its end; `execute` stops behind the first page.
        connection.executescript(f"PRAGMA incremental_vacuum({PAGES:d})")
    return True


def rewrite(database: Database) -> None:
    """Rewrite the file, so that it can shrink from now on; writers wait meanwhile."""
    with database.alone() as connection:
        connection.execute(SHRINKING)
        connection.execute("VACUUM")


def cut(database: Database) -> bool:
    """Truncate the file and the journal; return false if they are in use."""
    with database.alone(CUT_WITHIN_MS) as connection:
        is_busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    return not is_busy
