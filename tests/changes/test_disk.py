"""The functions that change files, while the files change under them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from efrit_budget.changes import disk
from efrit_budget.changes.change import ChangeError
from efrit_budget.changes.disk import DiskFile
from efrit_budget.project.project import Located, Project
from tests.changes.hands import tree

Work = Callable[[Located, Located, DiskFile], None]
"""A function that works on a file that was found, and on another place."""


def put(place: Located, _: Located, found: DiskFile) -> None:
    disk.put(place, b"mine", 0o600, found, ".scratch")


def put_anew(place: Located, _: Located, _found: DiskFile) -> None:
    disk.put(place, b"mine", 0o600, None, ".scratch")


def remove(place: Located, _: Located, found: DiskFile) -> None:
    disk.remove(place, found)


def move(place: Located, other: Located, found: DiskFile) -> None:
    disk.move(place, other, 0o600, found)


def looked_at(place: Located) -> DiskFile:
    found = disk.read(place)
    assert found is not None
    return found


@pytest.mark.parametrize("work", [put, put_anew, remove, move])
def test_a_file_that_is_another_than_the_one_looked_at_is_left_alone(
    project: Path, work: Work
) -> None:
    (project / "a").write_bytes(b"looked at")
    place, other = Project(project).locate("a"), Project(project).locate("new/b")
    found = looked_at(place)
    (project / "saved").write_bytes(b"written by hand")
    (project / "saved").rename(project / "a")
    with pytest.raises(ChangeError, match="this very moment"):
        work(place, other, found)
    assert contents(project) == {"a": b"written by hand"}


def test_nothing_is_moved_onto_a_file_that_is_there_by_now(project: Path) -> None:
    (project / "a").write_bytes(b"looked at")
    place, other = Project(project).locate("a"), Project(project).locate("b")
    found = looked_at(place)
    (project / "b").write_bytes(b"written by hand")
    with pytest.raises(ChangeError, match="b was changed this very moment"):
        move(place, other, found)
    assert contents(project) == {"a": b"looked at", "b": b"written by hand"}


@pytest.mark.parametrize("work", [put, remove, move])
def test_a_folder_that_became_a_link_meanwhile_is_not_followed(
    project: Path, tmp_path: Path, work: Work
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (project / "folder").mkdir()
    (project / "folder" / "a").write_bytes(b"looked at")
    place, other = Project(project).locate("folder/a"), Project(project).locate("b")
    found = looked_at(place)
    os.link(project / "folder" / "a", elsewhere / "a")
    (project / "folder").rename(project / "other")
    (project / "folder").symlink_to(elsewhere)
    with pytest.raises(ChangeError, match="Not a directory"):
        work(place, other, found)
    assert contents(elsewhere) == {"a": b"looked at"}


def contents(folder: Path) -> dict[str, bytes | str | None]:
    """Return the contents of all files in a folder."""
    return {name: held for name, (_, held) in tree(folder).items() if held is not None}


def test_what_is_put_back_has_its_permissions_whatever_the_umask(project: Path) -> None:
    before = os.umask(0o077)
    try:
        disk.put(Project(project).locate("new/a"), b"text", 0o754, None, ".scratch")
    finally:
        os.umask(before)
    assert (project / "new" / "a").stat().st_mode & 0o7777 == 0o754
    assert list(tree(project)) == ["new", "new/a"]


def test_a_scratch_file_that_another_left_is_taken_over(project: Path) -> None:
    (project / ".scratch").write_bytes(b"half")
    disk.put(Project(project).locate("a"), b"whole", 0o600, None, ".scratch")
    assert contents(project) == {"a": b"whole"}
