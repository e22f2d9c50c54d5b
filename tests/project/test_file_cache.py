"""Tests of the cache of what was found by reading files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from efrit_budget.project import file_cache
from efrit_budget.project.file_cache import FileCache, Sources

Read = Callable[[], str]


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every file count as settled."""
    monkeypatch.setattr(file_cache, "SETTLED_NS", -(10**15))


@pytest.fixture
def reads() -> list[str]:
    """Collect what was read."""
    return []


@pytest.fixture
def read(tmp_path: Path, reads: list[str]) -> Read:
    """Read a file through a cache."""
    cache: FileCache[str, str] = FileCache()

    def found(sources: Sources) -> str:
        file = sources.add(tmp_path / "file")
        reads.append(file.read_text() if file.exists() else "none")
        return reads[-1]

    return lambda: cache.get("key", found)


@pytest.mark.usefixtures("settled")
def test_a_file_is_read_again_only_when_it_has_changed(
    tmp_path: Path, read: Read, reads: list[str]
) -> None:
    file = tmp_path / "file"
    assert (read(), read()) == ("none", "none")
    file.write_text("one")
    assert (read(), read()) == ("one", "one")
    (tmp_path / "other").write_text("two")
    (tmp_path / "other").replace(file)
    assert (read(), read()) == ("two", "two")
    file.unlink()
    assert (read(), read()) == ("none", "none")
    assert reads == ["none", "one", "two", "none"]


def test_a_file_that_has_just_changed_is_read_each_time(
    tmp_path: Path, read: Read, reads: list[str]
) -> None:
    (tmp_path / "file").write_text("one")
    assert (read(), read()) == ("one", "one")
    assert len(reads) == 2


@pytest.mark.usefixtures("settled")
def test_what_depends_on_more_than_files_is_found_each_time() -> None:
    cache: FileCache[str, int] = FileCache()
    found = iter(range(9))

    def find(sources: Sources) -> int:
        sources.complete = False
        return next(found)

    assert [cache.get("key", find) for _ in range(3)] == [0, 1, 2]


@pytest.mark.usefixtures("settled")
def test_the_oldest_values_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_cache, "MOST_KEPT", 2)
    cache: FileCache[int, int] = FileCache()
    found = iter(range(9))
    for key in (1, 2, 3, 3, 2, 1):
        cache.get(key, lambda _: next(found))
    assert next(found) == 4
