"""Functions that fill the memory that a sidecar reads, for tests of tools."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from efrit_budget.memory.store import MemoryStore
from efrit_budget.storage.database import Database


@contextmanager
def memory_of(home: Path) -> Iterator[MemoryStore]:
    """Yield the memory of the sidecars of this test."""
    database = Database(home / "efrit" / "state" / "efrit-budget.sqlite3", 5000)
    try:
        yield MemoryStore(database)
    finally:
        database.close()
