"""Changes that the sidecar makes itself, in one request: all of a call, or none."""

from __future__ import annotations

import os
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from tests.changes.hands import CONFLICT, FAILED, INVALID, REFUSED, Hands, tree


def stamp(file: Path) -> str | None:
    """Return the stamp of a file, None if there is none."""
    if not file.exists():
        return None
    found = file.stat()
    return f"{found.st_size}-{found.st_mtime_ns}"


def entry(hands: Hands, path: str, kind: str, **more: Any) -> dict[str, Any]:
    """Return an entry about a file as it is now."""
    return {"path": path, "kind": kind, "stamp": stamp(hands.project / path), **more}


def replace(data: bytes, start: int = 0, end: int = 0) -> dict[str, Any]:
    """Return the bytes that take the place of others."""
    return {"start": start, "end": end, "data": b64encode(data).decode()}


def write(hands: Hands, *files: dict[str, Any], use: str | None = None) -> list[dict[str, Any]]:
    """Have the sidecar make the changes of one call; return them."""
    made = hands("write", tool_use_id=use or hands.use(), tool="a_tool", files=list(files))
    changes: list[dict[str, Any]] = made["changes"]
    return changes


def refusal(hands: Hands, *files: dict[str, Any], use: str = "refused") -> tuple[int, str]:
    """Return code and message of changes that must not be made; check that nothing changed."""
    before = tree(hands.project)
    error = hands.error("write", tool_use_id=use, tool="a_tool", files=list(files))
    assert tree(hands.project) == before
    return error.code, error.told


@pytest.fixture
def files(hands: Hands) -> Hands:
    """A project with some files."""
    for name in ("edited", "deleted", "renamed"):
        (hands.project / name).write_bytes(f"{name}: one two\r\n".encode())
    (hands.project / "edited").chmod(0o750)
    return hands


def all_kinds(files: Hands) -> list[dict[str, Any]]:
    """Return one change of each kind."""
    return [
        entry(files, "edited", "edit", replace=replace(b"1", 8, 11)),
        entry(files, "new/deep/created", "create", replace=replace(b"\xffmade")),
        entry(files, "deleted", "delete"),
        entry(files, "renamed", "rename", to="moved/renamed"),
    ]


def test_one_request_makes_each_kind_of_change_and_each_can_be_undone(files: Hands) -> None:
    before = tree(files.project)
    made = write(files, *all_kinds(files))
    assert (files.project / "edited").read_bytes() == b"edited: 1 two\r\n"
    assert (files.project / "edited").stat().st_mode & 0o777 == 0o750
    assert (files.project / "new/deep/created").read_bytes() == b"\xffmade"
    assert not (files.project / "deleted").exists()
    assert (files.project / "moved/renamed").exists()
    assert [one["path"] for one in made][-1] == "moved/renamed"
    for one in made:
        assert one["state"] == "done"
        assert one["stamp"] == stamp(files.project / one["path"])
    for one in reversed(made):
        files("undo", number=one["number"])
    assert tree(files.project) == before


def test_a_new_file_has_the_permissions_that_new_files_have(files: Hands) -> None:
    write(files, entry(files, "created", "create", replace=replace(b"")))
    mask = os.umask(0o022)
    os.umask(mask)
    assert (files.project / "created").stat().st_mode & 0o777 == 0o666 & ~mask


def test_a_replaced_file_keeps_its_access_list(files: Hands) -> None:
    # Version 2; user::rw-, user:1 may read, group::r--, mask::r--, other::---.
    entries = [(1, 6, -1), (2, 4, 1), (4, 4, -1), (16, 4, -1), (32, 0, -1)]
    listed = b"\2\0\0\0" + b"".join(
        tag.to_bytes(2, "little")
        + right.to_bytes(2, "little")
        + (who % 2**32).to_bytes(4, "little")
        for tag, right, who in entries
    )
    file, name = files.project / "edited", "system.posix_acl_access"
    try:
        os.setxattr(file, name, listed)
    except OSError:
        pytest.skip("no access lists here")
    write(files, entry(files, "edited", "edit", replace=replace(b"new", 0, 3)))
    assert os.getxattr(file, name) == listed


def test_of_several_changes_none_is_made_where_one_fails(files: Hands) -> None:
    impossible = entry(files, "new", "create", replace=replace(b"a folder by then"))
    others = all_kinds(files)[:3]
    code, told = refusal(files, *others, impossible)
    assert code == FAILED
    assert told == "new is no longer a file"
    assert {one["state"] for one in files("list")["changes"]} == {"abandoned"}
    code, told = refusal(files, *others, use="refused")
    assert code == FAILED
    assert "failed before" in told
    assert len(write(files, *all_kinds(files)[:3])) == 3


def test_a_file_that_changed_since_the_plan_is_left_alone(files: Hands) -> None:
    for planned in all_kinds(files):
        file = files.project / planned["path"]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("written by somebody else")
        code, told = refusal(files, planned, use=planned["path"])
        assert code == REFUSED
        assert f"{planned['path']} was just changed by somebody else" in told


def test_a_buffer_that_is_not_saved_leaves_its_file_alone(files: Hands) -> None:
    before = tree(files.project)
    texts = {"buffer_text": "one\n", "buffer_text_after": "two\n"}
    made = write(files, entry(files, "edited", "edit", **texts))
    assert tree(files.project) == before
    shown = files("show", number=made[0]["number"])
    assert "-one\n+two\n" in shown["diff"]
    assert files("undo", number=made[0]["number"])["buffer_text"] == "one\n"


def test_a_call_that_has_ended_is_not_made_again(files: Hands) -> None:
    planned = all_kinds(files)
    made = write(files, *planned, use="again")
    after = tree(files.project)
    assert write(files, *planned, use="again") == made
    assert tree(files.project) == after


def test_bytes_that_do_not_fit_the_file_are_refused(files: Hands) -> None:
    for planned in (
        entry(files, "edited", "edit", replace=replace(b"x", 0, 1_000)),
        entry(files, "edited", "edit", replace=replace(b"x", 5, 4)),
        entry(files, "edited", "edit", replace={"data": "no Base64!"}),
        entry(files, "edited", "edit"),
        entry(files, "deleted", "delete", replace=replace(b"x")),
        entry(files, "../outside", "create", replace=replace(b"x")),
        entry(files, ".git/hooks/pre-commit", "create", replace=replace(b"x")),
    ):
        assert refusal(files, planned)[0] == INVALID
    assert files("list")["changes"] == []


def test_an_interrupted_call_wants_the_same_changes(files: Hands) -> None:
    files.begin({"path": "edited", "kind": "edit"}, use="one")
    assert refusal(files, *all_kinds(files), use="one")[0] == CONFLICT
    (made,) = write(files, all_kinds(files)[0], use="one")
    assert made["state"] == "done"
    assert (files.project / "edited").read_bytes() == b"edited: 1 two\r\n"


def test_what_a_killed_sidecar_left_is_removed_when_the_session_goes_on(files: Hands) -> None:
    (begun,) = files.begin({"path": "edited", "kind": "edit"})
    left = files.project / f".efrit-write-{files.session}-c{begun['number']}"
    left.write_text("half")
    files.sidecar.request("session/resume", session_id=files.session)
    assert not left.exists()
