"""The database under real sidecars: several at once, locked, full, broken, killed."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.connection import Connection, RpcError
from tests.databases import locked
from tests.processes import until
from tests.sidecar import SERVE, Sidecar, forked

STORAGE_ERROR = -32003


@pytest.fixture
def database(home: Path) -> Path:
    """The database of this test's sidecars."""
    return home / "efrit" / "state" / "efrit-budget.sqlite3"


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def _tally(session: str, file: Path, use: str, **arguments: Any) -> dict[str, Any]:
    return {
        "session_id": session,
        "name": "tally",
        "arguments": {"file": str(file), **arguments},
        "tool_use_id": use,
    }


# Who may read it


def test_what_is_stored_is_for_its_owner_alone_whatever_the_umask(
    tools_for_tests: Path, project: Path, database: Path, tmp_path: Path
) -> None:
    command = ["sh", "-c", 'umask 0; exec "$@"', "sh", *SERVE]
    with Sidecar(command=command) as sidecar:
        session = sidecar.request("session/open", root=str(project))["session_id"]
        sidecar.request("tools/call", **_tally(session, tmp_path / "runs", "use"))
        stored = [file for file in database.parent.rglob("*") if file.is_file()]
        assert {file.suffix for file in stored} >= {".sqlite3", ".sqlite3-wal", ".sqlite3-shm"}
        assert {_mode(file) for file in stored} == {0o600}
        assert _mode(database.parent) == 0o700


def test_a_database_that_others_could_read_is_closed_to_them(
    tools_for_tests: Path, project: Path, database: Path
) -> None:
    with Sidecar() as sidecar:
        sidecar.request("session/open", root=str(project), session_id="kept")
    database.chmod(0o644)
    with Sidecar() as sidecar:
        assert sidecar.request("session/status", session_id="kept")
        assert _mode(database) == 0o600


def test_a_file_that_is_no_database_keeps_its_mode_and_its_content(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("not a database at all\n" * 100, encoding="utf-8")
    file.chmod(0o644)
    assert "is not a database" in _refusal(file)
    assert _mode(file) == 0o644
    assert file.read_text(encoding="utf-8") == "not a database at all\n" * 100


# Several at once


def test_sidecars_that_start_at_once_on_a_new_database_make_it_once(
    tools_for_tests: Path, project: Path, tmp_path: Path
) -> None:
    sidecars = [Sidecar("--db", str(tmp_path / "new.sqlite3")) for _ in range(6)]
    try:
        opened = [s.begin("session/open", root=str(project)) for s in sidecars]
        ids = {s.result(o)["session_id"] for s, o in zip(sidecars, opened, strict=True)}
        assert len(ids) == 6
        listed = sidecars[0].request("session/list", root=str(project))["sessions"]
        assert {session["session_id"] for session in listed} == ids
    finally:
        for sidecar in sidecars:
            sidecar.__exit__(None)


def test_two_sidecars_that_write_at_once_never_tell_of_a_lock(
    tools_for_tests: Path, project: Path, tmp_path: Path
) -> None:
    with Sidecar() as one, Sidecar() as other:
        for sidecar in (one, other):
            sidecar.request("ping")
        one.request("session/open", root=str(project), session_id="shared")
        calls = [
            (sidecar, sidecar.begin("tools/call", **_tally("shared", tmp_path / "runs", f"{n}")))
            for n in range(60)
            for sidecar in (one, other)
        ]
        opened = [
            (sidecar, sidecar.begin("session/open", root=str(project)))
            for _ in range(30)
            for sidecar in (one, other)
        ]
        assert all(sidecar.result(call)["status"] == "success" for sidecar, call in calls)
        assert len({sidecar.result(call)["session_id"] for sidecar, call in opened}) == 60
    runs = (tmp_path / "runs").read_text(encoding="utf-8")
    assert runs == "ran\n" * 60, "each use ran once, in one of the two"


# A lock that stays


@pytest.fixture
def impatient(tools_for_tests: Path) -> Iterator[Sidecar]:
    """A sidecar that waits only briefly for the database."""
    with Sidecar(env={"EFRIT_BUDGET_STORAGE__BUSY_TIMEOUT_MS": "100"}) as sidecar:
        sidecar.request("session/open", root="/", session_id="before")
        yield sidecar


def test_a_locked_database_is_told_and_the_next_call_works(
    impatient: Sidecar, project: Path, database: Path
) -> None:
    with locked(database):
        with pytest.raises(RpcError) as caught:
            impatient.request("session/open", root=str(project))
        assert impatient.request("session/status", session_id="before")
    assert caught.value.code == STORAGE_ERROR
    assert "locked" in caught.value.message
    assert "busy_timeout_ms" in caught.value.message
    assert impatient.request("session/open", root=str(project))["session_id"]


def test_many_writers_behind_a_lock_do_not_wait_for_one_another_in_turn(
    impatient: Sidecar, project: Path, database: Path
) -> None:
    with locked(database):
        opened = [impatient.begin("session/open", root=str(project)) for _ in range(40)]
        for request_id in opened:
            assert impatient.reply(request_id)["error"]["code"] == STORAGE_ERROR
    assert impatient.request("session/open", root=str(project))


def test_a_call_whose_result_could_not_be_kept_is_told_and_can_be_asked_for_again(
    impatient: Sidecar, database: Path, tmp_path: Path
) -> None:
    tally = _tally("before", tmp_path / "runs", "use", seconds=0.5)
    call = impatient.begin("tools/call", **tally)
    assert until((tmp_path / "runs").exists)
    with locked(database):
        assert until(lambda: "to store its result" in str(impatient.notifications("$/progress")))
        impatient.notify("$/cancelRequest", id=call)
        assert impatient.reply(call)["error"]["code"] == STORAGE_ERROR
    again = impatient.reply(impatient.begin("tools/call", **tally))
    assert again["result"]["status"] == "error"
    assert (tmp_path / "runs").read_text(encoding="utf-8") == "ran\n"


def test_the_end_of_the_input_ends_a_sidecar_that_waits_for_a_lock(
    tools_for_tests: Path, project: Path, database: Path
) -> None:
    with Sidecar() as sidecar:
        sidecar.request("session/open", root=str(project))
        with locked(database):
            sidecar.begin("session/open", root=str(project))
            sidecar.close_stdin()
            assert sidecar.wait_exit() == 0


# A disk that is full


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[tuple[Path, list[str]]]:
    """A small folder, and the start of a command that confines a sidecar to it.

    If no file system can be mounted, the size of the sidecar's files is limited instead.
    """
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    may_mount = os.geteuid() == 0 and shutil.which("mount") is not None
    if may_mount and subprocess.run(mount, capture_output=True, check=False).returncode == 0:
        yield folder, [*forked(), "serve"]
        subprocess.run(["umount", str(folder)], check=True)
    else:
        yield folder, ["sh", "-c", 'ulimit -f 4096; exec "$@"', "sh", *SERVE]


def test_a_full_disk_is_told_and_what_was_kept_stays(
    tools_for_tests: Path, project: Path, small_disk: tuple[Path, list[str]]
) -> None:
    folder, serve = small_disk
    command = [*serve[:-1], "--db", str(folder / "db.sqlite3"), "serve"]
    with Sidecar(command=command) as sidecar:
        sidecar.request("session/open", root=str(project), session_id="kept")
        error = _fill(sidecar)
        assert error.code == STORAGE_ERROR
        assert "full" in error.message or "I/O" in error.message
        assert "free some space" in error.message
        assert "xyzzy" not in error.message
        assert sidecar.request("session/status", session_id="kept")["session_id"] == "kept"
        assert sidecar.request("ping") == "pong"
    with Sidecar(command=command) as sidecar:
        assert sidecar.request("session/list", include_closed=True)["sessions"]


def _fill(sidecar: Connection) -> RpcError:
    for number in range(400):
        title = f"{number}" * 50
        try:
            sidecar.request("session/rename", session_id="kept", title=title[:200])
            sidecar.request(
                "tools/record",
                session_id="kept",
                name="client_tool",
                tool_use_id=f"use-{number}",
                text=os.urandom(100_000).hex(),
            )
        except RpcError as error:
            return error
    raise AssertionError("the disk was never full")


# A database that cannot be used


def _refusal(database: Path) -> str:
    """Return the errors of a sidecar that cannot work with this database."""
    with Sidecar("--db", str(database)) as sidecar:
        sidecar.begin("session/list")
        sidecar.close_stdin()
        code = sidecar.wait_exit()
        errors = sidecar.errors() + "".join(
            m.value["error"]["message"] for m in sidecar.received if "error" in m.value
        )
    assert code == 1 or "error" in str(sidecar.received)
    assert "Traceback" not in errors
    assert (
        str(database) in errors
        or "backup" in errors
        or "another program" in errors
        or "schema" in errors
    )
    return errors


def _make(database: Path) -> Path:
    with Sidecar("--db", str(database)) as sidecar:
        sidecar.request("session/open", root="/", session_id="before")
    return database


def test_a_database_of_a_newer_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    database = _make(tmp_path / "db.sqlite3")
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA user_version = 9999")
    before = database.read_bytes()
    told = _refusal(database)
    assert "9999" in told
    assert "upgrade" in told
    assert database.read_bytes() == before


@pytest.mark.parametrize("version", [0, 1, 2, 75])
def test_a_database_of_another_program_is_refused_and_left_alone(
    tmp_path: Path, version: int
) -> None:
    database = tmp_path / "places.sqlite"
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("CREATE TABLE sessions (bookmarks TEXT)")
        connection.execute(f"PRAGMA user_version = {version}")
        connection.commit()
    assert "another program" in _refusal(database)
    with closing(sqlite3.connect(database)) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master").fetchall()
    assert tables == [("sessions",)]


def test_a_damaged_database_is_told_as_such(tmp_path: Path) -> None:
    database = _make(tmp_path / "db.sqlite3")
    content = bytearray(database.read_bytes())
    content[200:] = os.urandom(len(content) - 200)
    database.write_bytes(content)
    assert "malformed" in _refusal(database)


def test_a_folder_is_no_database(tmp_path: Path) -> None:
    assert "cannot be used" in _refusal(tmp_path)


def test_a_database_in_a_place_that_cannot_be_is_told_as_such(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "cannot be used" in _refusal(tmp_path / "file" / "db.sqlite3")


def test_a_database_that_lost_its_content_is_not_begun_anew(tmp_path: Path) -> None:
    database = _make(tmp_path / "db.sqlite3")
    os.truncate(database, 0)
    told = _refusal(database)
    assert "is empty" in told
    assert "backup" in told
    assert database.stat().st_size == 0


def test_an_empty_database_with_the_mark_of_another_program_is_refused(tmp_path: Path) -> None:
    database = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA application_id = 1196444487")
        connection.commit()
    assert "another program" in _refusal(database)
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)


@pytest.mark.parametrize(
    ("kind", "name"),
    [("table", "turns"), ("index", "calls_announced"), ("view", "remembered_sessions")],
)
def test_what_a_database_has_lost_is_named(tmp_path: Path, kind: str, name: str) -> None:
    database = _make(tmp_path / "db.sqlite3")
    with closing(sqlite3.connect(database)) as connection:
        connection.execute(f"DROP {kind} {name}")
        connection.commit()
    assert f"{kind} {name}" in _refusal(database)
    with closing(sqlite3.connect(database)) as connection:
        rows = connection.execute("SELECT name FROM sqlite_master").fetchall()
    assert (name,) not in rows


@pytest.mark.parametrize("name", ["a b?mode=ro", "größe%20", "new\nline", "file:x", "-x;'\""])
def test_a_database_may_have_any_name(tmp_path: Path, name: str) -> None:
    database = _make(tmp_path / name)
    assert database.is_file()


def test_what_a_sidecar_keeps_after_another_has_ended_is_seen_and_outlives_its_death(
    tools_for_tests: Path, project: Path
) -> None:
    def listed(sidecar: Connection) -> set[str]:
        sessions = sidecar.request("session/list", include_closed=True)["sessions"]
        return {session["session_id"] for session in sessions}

    with Sidecar() as first:
        first.request("session/open", root=str(project), session_id="before")
        with Sidecar() as other:
            other.request("session/open", root=str(project), session_id="meanwhile")
        first.request("session/open", root=str(project), session_id="after")
        with Sidecar() as other:
            assert listed(other) == {"before", "meanwhile", "after"}
        first.kill()
    with Sidecar() as last:
        assert listed(last) == {"before", "meanwhile", "after"}


# A sidecar that is killed


def test_a_sidecar_that_is_killed_while_it_writes_leaves_what_it_answered(
    tools_for_tests: Path, project: Path, database: Path
) -> None:
    with Sidecar() as sidecar:
        sidecar.request("ping")
        opened = [
            sidecar.begin("session/open", root=str(project), session_id=f"s{number}")
            for number in range(200)
        ]
        sidecar.result(opened[50])
        sidecar.kill()
        sidecar.wait_exit()
        answered = {
            m.value["result"]["session_id"]
            for m in sidecar.received
            if isinstance(m.value.get("result"), dict)
        }
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    with Sidecar() as sidecar:
        listed = sidecar.request("session/list", root=str(project))["sessions"]
        assert answered <= {session["session_id"] for session in listed}
        assert len(answered) >= 1
