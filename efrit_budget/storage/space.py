"""Measure and shrink the database file."""

import sqlite3
from dataclasses import dataclass

from efrit_budget.storage.database import SHRINKING, Database

INCREMENTAL = 2
"""SQLite's value of `auto_vacuum` for files that can shrink step by step."""
PAGES = 200
"""The most pages that one `give_back` frees."""
CUT_WITHIN_MS = 50
"""The milliseconds that `cut` waits for other processes, while writers of this process wait."""
WORTH_PAGES, WORTH_SHARE = 256, 5
"""Shrinking is worthwhile above `WORTH_PAGES` free pages and one page in `WORTH_SHARE`."""


@dataclass(frozen=True)
class Space:
    """The numbers of all and of free pages of a database, and the bytes of a page."""

    pages: int
    free: int
    page_size: int
    can_shrink: bool
    """True if `give_back` works; a file of an older version needs `rewrite` once before."""

    @property
    def size(self) -> int:
        """The size of the file in bytes."""
        return self.pages * self.page_size

    @property
    def used(self) -> int:
        """The bytes of the pages that are not free."""
        return (self.pages - self.free) * self.page_size

    @property
    def is_worth_shrinking(self) -> bool:
        """Return whether so many pages are free that shrinking the file is worthwhile."""
        return self.free > max(WORTH_PAGES, self.pages // WORTH_SHARE)


def space_of(connection: sqlite3.Connection) -> Space:
    """Return the numbers of pages of a database."""
    pages, free, page_size, mode = (
        int(connection.execute(f"PRAGMA {name}").fetchone()[0])
        for name in ("page_count", "freelist_count", "page_size", "auto_vacuum")
    )
    return Space(pages, free, page_size, mode == INCREMENTAL)


def give_back(database: Database) -> bool:
    """Give up to `PAGES` free pages back to the disk; return False if no page is free."""
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
    """Move the journal into the file and truncate both; return False if they are in use."""
    with database.alone(CUT_WITHIN_MS) as connection:
        is_busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    return not is_busy
