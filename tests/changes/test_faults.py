"""Faults during a change: full disks, locks, files that may not be read or written."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.changes.hands import FAILED, STORAGE, Hands, tree
from tests.connection import Connection
from tests.local_sidecar import LocalSidecar
from tests.sidecar import SERVE, Sidecar

DISK_BYTES = 4 * 2**20
AS_OTHERS = ["setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner"]
"""The command prefix that makes file permissions bind the superuser too."""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk with little space."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(folder)]
    may_mount = os.geteuid() == 0 and shutil.which("mount") is not None
    if not may_mount or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_what_cannot_be_put_back_on_a_full_disk_stays_as_it_is(
    sidecar: Connection, small_disk: Path
) -> None:
    opened = sidecar.request("session/open", root=str(small_disk))
    hands = Hands(sidecar, small_disk, opened["session_id"])
    content = os.urandom(DISK_BYTES // 2)
    (small_disk / "a").write_bytes(content)
    number = hands.edit("a", "small")
    (small_disk / "filling").write_bytes(os.urandom(DISK_BYTES * 3 // 4))
    before = tree(small_disk)
    error = hands.error("undo", number=number)
    assert error.code == FAILED
    assert error.message == "a cannot be written: No space left on device"
    assert tree(small_disk) == before
    assert hands.now(number) == "as_left"
    (small_disk / "filling").unlink()
    hands("undo", number=number)
    assert (small_disk / "a").read_bytes() == content


def test_nothing_is_begun_that_cannot_be_kept_on_a_full_disk(
    tools_for_tests: Path, project: Path, small_disk: Path
) -> None:
    command = [*SERVE[:-1], "--db", str(small_disk / "db.sqlite3"), "serve"]
    (project / "small").write_text("small")
    (project / "large").write_bytes(os.urandom(DISK_BYTES))
    with Sidecar(command=command) as sidecar:
        opened = sidecar.request("session/open", root=str(project))
        hands = Hands(sidecar, project, opened["session_id"])
        files = [{"path": "small", "kind": "edit"}, {"path": "large", "kind": "edit"}]
        error = hands.error("begin", tool_use_id="one", tool="t", files=files)
        assert error.code == STORAGE
        assert "free some space" in error.message
        assert hands("list")["changes"] == []
        hands("undo", number=hands.edit("small", "changed"))
    assert (project / "small").read_text() == "small"


@pytest.fixture
def impatient(tools_for_tests: Path, project: Path) -> Iterator[Hands]:
    """A sidecar that waits only briefly for the database."""
    with Sidecar(env={"EFRIT_BUDGET_STORAGE__BUSY_TIMEOUT_MS": "100"}) as sidecar:
        opened = sidecar.request("session/open", root=str(project))
        yield Hands(sidecar, project, opened["session_id"])


def test_while_the_database_is_locked_nothing_is_begun_ended_or_undone(
    impatient: Hands, home: Path
) -> None:
    (impatient.project / "a").write_text("before")
    number = impatient.edit("a", "after")
    begun = {"tool_use_id": "begun", "tool": "t", "files": [{"path": "b", "kind": "create"}]}
    impatient("begin", **begun)
    before = tree(impatient.project)
    database = next(home.rglob("*.sqlite3"))
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        for method, params in (
            ("begin", {**begun, "tool_use_id": "other"}),
            ("end", {"tool_use_id": "begun", "outcome": "done"}),
            ("undo", {"number": number}),
            ("checkpoint", {}),
        ):
            error = impatient.error(method, **params)
            assert error.code == STORAGE
            assert "locked" in error.message
        assert impatient.now(number) == "as_left"
        connection.execute("ROLLBACK")
    assert tree(impatient.project) == before
    states = [one["state"] for one in impatient("list")["changes"]]
    assert states == ["done", "begun"]
    impatient("undo", number=number)
    assert (impatient.project / "a").read_text() == "before"


@pytest.fixture
def as_others(tools_for_tests: Path, project: Path) -> Iterator[Hands]:
    """A sidecar that cannot open files closed to their owner."""
    prefix = AS_OTHERS if os.geteuid() == 0 else []
    if prefix and shutil.which(prefix[0]) is None:
        pytest.skip("nothing closes a file to the superuser here")
    with Sidecar(command=[*prefix, *SERVE]) as sidecar:
        opened = sidecar.request("session/open", root=str(project))
        yield Hands(sidecar, project, opened["session_id"])


def test_a_file_that_may_not_be_read_is_not_begun(as_others: Hands) -> None:
    file = as_others.project / "closed"
    file.write_text("secret")
    file.chmod(0)
    assert as_others("check", paths=["closed"])["files"][0]["problem"] is None
    files = [{"path": "closed", "kind": "edit"}]
    error = as_others.error("begin", tool_use_id="one", tool="t", files=files)
    assert error.code == FAILED
    assert error.message == "closed cannot be read: Permission denied"
    file.chmod(0o600)
    number = as_others.edit("closed", "changed")
    file.chmod(0)
    assert as_others.now(number) == "unknown"
    assert as_others.error("show", number=number).code == FAILED
    assert as_others.error("undo", number=number, force=True).code == FAILED


def test_a_folder_that_may_not_be_entered_is_a_problem(as_others: Hands) -> None:
    folder = as_others.project / "closed"
    folder.mkdir()
    folder.chmod(0)
    told = as_others("check", paths=["closed/a"])["files"][0]
    assert told["problem"] == "Permission denied"
    folder.chmod(0o700)


def test_a_file_in_a_folder_that_may_not_be_written_is_not_put_back(as_others: Hands) -> None:
    folder = as_others.project / "closed"
    folder.mkdir()
    for name in "ab":
        (folder / name).write_text("before")
    edited, created = as_others.edit("closed/a", "after"), as_others.create("closed/c", "c")
    renamed = as_others.rename("closed/b", "b")
    folder.chmod(0o500)
    before = tree(as_others.project)
    for number, told in (
        (edited, "closed/a cannot be written"),
        (created, "closed/c cannot be removed"),
        (renamed, "b cannot be renamed to closed/b"),
    ):
        error = as_others.error("undo", number=number)
        assert error.code == FAILED
        assert error.message == f"{told}: Permission denied"
    assert tree(as_others.project) == before
    folder.chmod(0o700)
    for number in (edited, created, renamed):
        as_others("undo", number=number)
    assert sorted(tree(as_others.project)) == ["closed", "closed/a", "closed/b"]


def test_a_project_that_is_gone_is_told_as_such(hands: Hands) -> None:
    number = hands.create("a", "a")
    (hands.project / "a").unlink()
    hands.project.rmdir()
    assert hands.now(number) == "undone"
    deleted = hands.error(
        "begin", tool_use_id="x", tool="t", files=[{"path": "b", "kind": "delete"}]
    )
    assert "no such file" in deleted.told
    hands.project.mkdir()


def test_undone_by_two_at_once_a_change_is_undone_once(hands: Hands, project: Path) -> None:
    (project / "a").write_text("0")
    numbers = [hands.edit("a", str(number)) for number in range(1, 6)]
    with LocalSidecar() as other:
        other.request("ping")
        for number in reversed(numbers):
            params = {"session_id": hands.session, "number": number}
            calls = [
                (sidecar, sidecar.begin("changes/undo", **params))
                for sidecar in (hands.sidecar, other, hands.sidecar, other)
            ]
            replies = [sidecar.reply(call) for sidecar, call in calls]
            assert sum("result" in reply for reply in replies) == 1
            assert {reply["error"]["code"] for reply in replies if "error" in reply} == {FAILED}
            assert (project / "a").read_text() == str(number - 1)
