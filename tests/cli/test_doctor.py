"""`efrit-budget doctor`."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from efrit_budget.project.processes import landlock
from tests.cli.command import Ended, efrit, efrit_process, open_session, write_config


def check(ended: Ended, name: str) -> dict[str, Any]:
    """Return the check with this name."""
    found: dict[str, Any] = next(one for one in ended.json["checks"] if one["name"] == name)
    return found


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A PATH with only git, to which a test adds programs."""
    folder = tmp_path / "programs"
    folder.mkdir()
    git = shutil.which("git")
    assert git is not None
    (folder / "git").symlink_to(git)
    return folder


def add_program(folder: Path, name: str, prints: str) -> None:
    """Add a program that prints its version."""
    file = folder / name
    file.write_text(f"#!/bin/sh\necho '{prints}'\n", encoding="utf-8")
    file.chmod(0o755)


def database(home: Path) -> Path:
    """Return the place of the database if no setting changes it."""
    return home / "efrit" / "state" / "efrit-budget.sqlite3"


def test_a_whole_installation_is_ok_in_every_required_line(tmp_path: Path) -> None:
    open_session(tmp_path)
    ended = efrit("doctor", "--json")
    assert ended.code == 0
    assert ended.json["ok"]
    assert not [one for one in ended.json["checks"] if one["required"] and not one["ok"]]


def test_what_confines_git_and_rg_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = check(efrit("doctor", "--json"), "confinement")
    assert known["ok"]
    assert ("their own files" in known["found"]) is (landlock.version() > 0)
    monkeypatch.setattr(landlock, "version", lambda: 0)
    assert "by hand" in check(efrit("doctor", "--json"), "confinement")["found"]


def test_people_see_a_line_for_each_check() -> None:
    shown = efrit("doctor").out
    for name in ("Python", "package pydantic", "rg (bundled)", "git", "database", "free disk"):
        assert f"ok       {name} " in shown or f"ok  {name} " in shown


def test_a_look_at_a_fresh_home_makes_nothing(home: Path) -> None:
    ended = efrit("doctor", "--json")
    assert "will be made" in check(ended, "database")["found"]
    assert not (home / "efrit").exists()


def test_a_missing_git_is_a_problem_that_says_what_to_install(tmp_path: Path) -> None:
    ended = efrit("doctor", env={"PATH": str(tmp_path)})
    assert ended.code == 1
    line = next(line for line in ended.out.splitlines() if " git " in line)
    assert line.startswith("problem")
    assert line.endswith("-> install git 2.31 or newer (Debian: git)")


def test_a_git_that_is_too_old_for_the_tools_is_a_problem(programs: Path) -> None:
    (programs / "git").unlink()
    add_program(programs, "git", "git version 2.30.2")
    ended = efrit("doctor", "--json", env={"PATH": str(programs)})
    assert ended.code == 1
    assert "older than 2.31" in check(ended, "git")["found"]


@pytest.mark.parametrize(
    ("name", "needed_for", "packages"),
    [
        ("Emacs", "the Emacs client", "emacs-gtk"),
        ("curl", "requests to the model", "curl ca-certificates"),
    ],
)
def test_what_only_the_client_needs_is_no_problem_of_the_sidecar(
    programs: Path, name: str, needed_for: str, packages: str
) -> None:
    ended = efrit("doctor", "--json", env={"PATH": str(programs)})
    assert ended.code == 0
    missing = check(ended, name)
    assert (missing["ok"], missing["required"]) == (False, False)
    assert missing["found"] == f"not found; needed for {needed_for}"
    assert packages in missing["fix"]


def test_an_emacs_that_is_too_old_is_told_apart(programs: Path) -> None:
    add_program(programs, "emacs", "GNU Emacs 27.2")
    ended = efrit("doctor", "--json", env={"PATH": str(programs)})
    assert "27.2" in check(ended, "Emacs")["found"]
    assert "older than 28.1" in check(ended, "Emacs")["found"]


def test_another_ctags_is_no_problem_of_the_sidecar_and_is_told(programs: Path) -> None:
    add_program(programs, "ctags", "ctags (GNU Emacs 29.4)")
    ended = efrit("doctor", "--json", env={"PATH": str(programs)})
    assert ended.code == 0
    ctags = check(ended, "universal-ctags")
    assert (ctags["ok"], ctags["required"]) == (False, False)
    assert "without +json; needed for the tool list_symbols" in ctags["found"]
    add_program(programs, "ctags", "Universal Ctags 6.1.0, Optional compiled features: +json")
    found = check(efrit("doctor", "--json", env={"PATH": str(programs)}), "universal-ctags")
    assert found["ok"]
    assert found["found"] == str(programs / "ctags")


def test_an_old_rg_on_path_is_named_and_does_no_harm(programs: Path) -> None:
    add_program(programs, "rg", "ripgrep 12.1.1")
    ended = efrit("doctor", "--json", env={"PATH": str(programs)})
    assert ended.code == 0
    assert "older than 13.0; the bundled one serves" in check(ended, "rg (system)")["found"]


def test_a_program_that_does_not_run_is_not_taken_for_there(programs: Path) -> None:
    (programs / "git").unlink()
    (programs / "git").write_text("#!/no/such/interpreter\n", encoding="utf-8")
    (programs / "git").chmod(0o755)
    ended = efrit("doctor", "--json", env={"PATH": str(programs)})
    assert ended.code == 1
    assert "does not run" in check(ended, "git")["found"]


def test_a_file_that_is_no_database_is_a_problem_and_stays_as_it_is(home: Path) -> None:
    database(home).parent.mkdir(parents=True)
    database(home).write_bytes(b"something else entirely" * 100)
    ended = efrit("doctor", "--json")
    assert ended.code == 1
    assert "not a database" in check(ended, "database")["found"]
    assert "mv " in check(ended, "database")["fix"]
    assert database(home).read_bytes().startswith(b"something else")


def test_a_damaged_database_is_found(home: Path, tmp_path: Path) -> None:
    open_session(tmp_path)
    size = database(home).stat().st_size
    with database(home).open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(size - 4096))
    ended = efrit("doctor", "--json")
    assert ended.code == 1
    assert not check(ended, "database")["ok"]


def test_a_database_that_others_may_read_is_a_problem_with_the_command_to_fix_it(
    home: Path, tmp_path: Path
) -> None:
    open_session(tmp_path)
    assert check(efrit("doctor", "--json"), "database mode")["found"] == "0600"
    database(home).chmod(0o644)
    mode = check(efrit("doctor", "--json"), "database mode")
    assert mode["fix"] == f"run: chmod 600 '{database(home)}'"


def test_a_schema_from_the_future_is_a_problem(home: Path, tmp_path: Path) -> None:
    open_session(tmp_path)
    with closing(sqlite3.connect(database(home))) as connection:
        connection.execute("PRAGMA user_version = 9999")
    ended = efrit("doctor", "--json")
    assert ended.code == 1
    assert "upgrade efrit-budget" in check(ended, "database schema")["fix"]


def test_a_home_that_cannot_be_made_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    ended = efrit("doctor", "--json", env={"EFRIT_BUDGET_HOME": str(tmp_path / "file" / "home")})
    assert ended.code == 1
    assert not check(ended, "state folder")["ok"]
    assert not check(ended, "log folder")["ok"]
    assert not check(ended, "config folder")["required"]


def test_a_wrong_setting_is_a_line_among_the_others(home: Path) -> None:
    write_config(home, "[budget]\ntotal = 5\n")
    ended = efrit("doctor", "--json")
    assert ended.code == 1
    assert "budget.total = 5" in check(ended, "settings")["found"]
    assert check(ended, "git")["ok"]


def test_a_package_that_cannot_be_imported_does_not_end_the_doctor(tmp_path: Path) -> None:
    (tmp_path / "pydantic.py").write_text("raise ImportError('broken')\n", encoding="utf-8")
    ended = efrit_process("doctor", "--json", env={"PYTHONPATH": str(tmp_path)})
    assert ended.code == 1
    assert "broken" in check(ended, "settings")["found"]


def test_a_database_that_lost_its_content_is_a_problem(home: Path, tmp_path: Path) -> None:
    open_session(tmp_path)
    os.truncate(database(home), 0)
    found = check(efrit("doctor", "--json"), "database")
    assert not found["ok"]
    assert "empty" in found["found"]
    assert "backup" in found["fix"]


def test_a_database_that_lacks_a_table_or_that_another_program_made_is_a_problem(
    home: Path, tmp_path: Path
) -> None:
    open_session(tmp_path)
    with closing(sqlite3.connect(database(home))) as connection:
        connection.execute("DROP TABLE checkpoints")
        connection.commit()
    found = check(efrit("doctor", "--json"), "database")
    assert not found["ok"]
    assert "table checkpoints" in found["found"]
    with closing(sqlite3.connect(database(home))) as connection:
        connection.execute("PRAGMA application_id = 7")
        connection.commit()
    found = check(efrit("doctor", "--json"), "database")
    assert not found["ok"]
    assert "another program" in found["found"]


def test_a_file_that_is_much_larger_than_what_it_holds_is_told(home: Path, tmp_path: Path) -> None:
    open_session(tmp_path)
    assert check(efrit("doctor", "--json"), "database size")["ok"]
    with closing(sqlite3.connect(database(home), isolation_level=None)) as connection:
        connection.execute("CREATE TABLE filling (data BLOB)")
        connection.execute("INSERT INTO filling VALUES (randomblob(8000000))")
        connection.execute("DROP TABLE filling")
    assert not check(efrit("doctor", "--json"), "database size")["ok"]
    session = open_session(tmp_path)
    assert efrit("sessions", "purge", session, "--yes").code == 0
    assert check(efrit("doctor", "--json"), "database size")["ok"], "what the doctor says is so"
