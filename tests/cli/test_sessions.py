"""`efrit-budget sessions`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import efrit, efrit_at_a_terminal, open_session


def ids(*arguments: str) -> set[str]:
    """Return the ids in a list of sessions."""
    listed = efrit("sessions", *arguments, "--json").json["sessions"]
    return {session["session_id"] for session in listed}


def test_no_sessions_is_said_in_words() -> None:
    assert efrit("sessions").out == "There is no open session.\n"
    assert efrit("sessions", "list", "--all").out == "There is no session.\n"


def test_a_listing_shows_id_root_and_title(tmp_path: Path) -> None:
    session = open_session(tmp_path)
    efrit("sessions", "rename", session, "the parser")
    heading, row = efrit("sessions").out.splitlines()
    assert heading.split() == ["ID", "STATE", "TOUCHED", "CALLS", "ROOT", "TITLE"]
    assert row.startswith(f"{session}  open ")
    assert row.endswith(f"{tmp_path}  the parser")


def test_the_listing_of_one_project_leaves_the_others_out(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first, second = open_session(tmp_path / "a"), open_session(tmp_path / "b")
    assert ids() == {first, second}
    assert ids("--root", str(tmp_path / "a")) == {first}
    assert ids("list", "--root", str(tmp_path / "b")) == {second}


def test_closed_sessions_are_listed_when_asked_for(tmp_path: Path) -> None:
    session = open_session(tmp_path)
    efrit("call", "session/close", json.dumps({"session_id": session}))
    assert ids() == set()
    assert ids("--all") == ids("list", "--all") == {session}


def test_a_title_cannot_control_the_terminal(tmp_path: Path) -> None:
    session = open_session(tmp_path)
    efrit("sessions", "rename", session, "red \x1b[31m alert\nsecond line")
    shown = efrit("sessions").out
    assert "\x1b" not in shown
    assert len(shown.splitlines()) == 2


@pytest.mark.parametrize("action", ["delete", "purge"])
def test_nothing_is_removed_when_nobody_can_be_asked(action: str, tmp_path: Path) -> None:
    session = open_session(tmp_path)
    ended = efrit("sessions", action, session)
    assert ended.code == 1
    assert "--yes" in ended.complaint
    assert ids() == {session}


def test_yes_deletes_without_asking(tmp_path: Path) -> None:
    first, second, third = (open_session(tmp_path) for _ in range(3))
    ended = efrit("sessions", "delete", first, second, "--yes")
    assert (ended.code, ended.out) == (0, f"deleted: {first}, {second}\n")
    assert ids("--all") == {third}


def test_purging_keeps_the_line(tmp_path: Path) -> None:
    session = open_session(tmp_path)
    assert efrit("sessions", "purge", session, "--yes", "--json").json == {"purged": [session]}
    assert ids("--all") == {session}


def test_an_unknown_id_does_not_keep_the_others_from_being_deleted(tmp_path: Path) -> None:
    session = open_session(tmp_path)
    ended = efrit("sessions", "delete", "zzzzz", session, "--yes")
    assert ended.code == 1
    assert "zzzzz" in ended.complaint
    assert ended.out == f"deleted: {session}\n"
    assert ids("--all") == set()


@pytest.mark.parametrize(("typed", "kept"), [("yes\n", False), ("n\n", True), ("\x04", True)])
def test_at_a_terminal_the_person_is_asked(typed: str, kept: bool, tmp_path: Path) -> None:
    session = open_session(tmp_path)
    ended = efrit_at_a_terminal("sessions", "delete", session, typed=typed)
    assert f"Delete {session}, with everything in them?" in ended.err
    assert ended.code == (1 if kept else 0)
    assert (session in ids()) == kept


def test_renaming_an_unknown_session_is_one_line() -> None:
    ended = efrit("sessions", "rename", "zzzzz", "a title")
    assert ended.code == 1
    assert "zzzzz" in ended.complaint
