"""A migrated database, made once for a run of the tests and copied for each that needs one."""

from __future__ import annotations

import os
import sqlite3
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path

from efrit_budget.memory.store import MemoryStore
from efrit_budget.storage.database import Database


@cache
def template() -> bytes:
    """Return the bytes of an empty database of the newest schema."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "template.db"
        Database(file, 5000).close()
        return file.read_bytes()


def open_database(file: Path) -> Database:
    """Open an empty, migrated database of this name."""
    return Database(copy_template(file), 5000)


@contextmanager
def locked(database: Path) -> Iterator[None]:
    """Hold a database's write lock while the block runs, as another process might."""
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


@contextmanager
def empty_memory() -> Iterator[MemoryStore]:
    """Yield an empty memory; close its database even if a random example is given up."""
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(open_database(Path(folder) / "memory.db")) as database,
    ):
        yield MemoryStore(database)


def copy_template(file: Path) -> Path:
    """Make `file` an empty, migrated database, unless there is one; nobody sees it unfinished."""
    if not file.exists():
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        unfinished = file.with_name(f".{os.getpid()}-{threading.get_ident()}.unfinished")
        unfinished.touch(mode=0o600)
        unfinished.write_bytes(template())
        with suppress(FileExistsError):
            file.hardlink_to(unfinished)
        unfinished.unlink()
    return file
