"""A memory store for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from efrit_budget.memory.store import MemoryStore
from efrit_budget.storage.database import Database
from tests.databases import open_database


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """An empty database."""
    opened = open_database(tmp_path / "memory.db")
    yield opened
    opened.close()


@pytest.fixture
def store(database: Database) -> MemoryStore:
    """An empty memory."""
    return MemoryStore(database)
