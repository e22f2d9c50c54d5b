"""The contents of files as they are stored before and after a change."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from efrit_budget.errors import SessionClosedError
from tests.changes.hands import CONFLICT, FAILED, INVALID, Hands, tree
from tests.local_sidecar import LocalSidecar
from tests.sidecar import Sidecar

MEGABYTE = 1_000_000


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_a_change_is_begun_with_what_its_file_holds_and_numbered_from_one(hands: Hands) -> None:
    (hands.project / "a.txt").write_text("a")
    begun = hands.begin({"path": "a.txt", "kind": "edit"}, {"path": "b/c", "kind": "create"})
    assert begun == [
        {
            "number": 1,
            "path": "a.txt",
            "file": str(hands.project / "a.txt"),
            "exists": True,
            "sha256": sha256(b"a"),
        },
        {
            "number": 2,
            "path": "b/c",
            "file": str(hands.project / "b" / "c"),
            "exists": False,
            "sha256": None,
        },
    ]
    assert hands.begin({"path": "d", "kind": "create"})[0]["number"] == 3


def test_beginning_and_ending_change_nothing_in_the_project(hands: Hands) -> None:
    (hands.project / "a.txt").write_text("a")
    before = tree(hands.project)
    hands.changed(lambda: None, {"path": "a.txt", "kind": "edit"}, {"path": "x/y", "kind": "edit"})
    assert tree(hands.project) == before


def test_a_change_begun_twice_has_the_same_number(hands: Hands) -> None:
    (hands.project / "a.txt").write_text("a")
    file = {"path": "a.txt", "kind": "edit", "buffer_text": "unsaved"}
    assert hands.begin(file, use="one") == hands.begin(file, use="one")
    assert len(hands("list")["changes"]) == 1


def test_begun_again_a_file_that_has_become_another_is_kept_anew(hands: Hands) -> None:
    file = hands.project / "a.txt"
    file.write_text("first")
    hands.begin({"path": "a.txt", "kind": "edit"}, use="one")
    file.write_text("second")
    begun = hands.begin({"path": "a.txt", "kind": "edit"}, use="one")
    assert begun[0]["sha256"] == sha256(b"second")
    file.write_text("third")
    ended = hands("end", tool_use_id="one", outcome="done")["changes"]
    states = {one["number"]: one["state"] for one in ended}
    assert states == {1: "abandoned", begun[0]["number"]: "done"}
    hands("undo", number=begun[0]["number"])
    assert file.read_text() == "second"


def test_what_has_ended_is_not_begun_again(hands: Hands) -> None:
    use = hands.use()
    hands.begin({"path": "a.txt", "kind": "create"}, use=use)
    hands("end", tool_use_id=use, outcome="abandoned")
    error = hands.error(
        "begin", tool_use_id=use, tool="t", files=[{"path": "a.txt", "kind": "create"}]
    )
    assert error.code == CONFLICT
    assert "another tool_use_id" in error.message


def test_ending_tells_what_was_and_what_is_there_and_tells_it_again(hands: Hands) -> None:
    file = hands.project / "a.txt"
    file.write_text("before")
    use = hands.use()
    hands.begin({"path": "a.txt", "kind": "edit"}, use=use)
    file.write_text("after")
    ended = hands("end", tool_use_id=use, outcome="done")
    expected = {
        "number": 1,
        "state": "done",
        "before": sha256(b"before"),
        "after": sha256(b"after"),
    }
    assert ended == {"changes": [expected]}
    file.write_text("by hand")
    assert hands("end", tool_use_id=use, outcome="done") == ended
    assert hands("end", tool_use_id=use, outcome="abandoned") == ended


def test_a_change_that_was_abandoned_is_not_there_to_be_undone(hands: Hands) -> None:
    use = hands.use()
    hands.begin({"path": "a.txt", "kind": "create"}, use=use)
    ended = hands("end", tool_use_id=use, outcome="abandoned")["changes"][0]
    assert ended == {"number": 1, "state": "abandoned", "before": None, "after": None}
    assert hands.now(1) == "undone"
    error = hands.error("undo", number=1, force=True)
    assert error.code == FAILED
    assert "abandoned" in error.message


def test_what_was_never_begun_cannot_end(hands: Hands) -> None:
    assert "nothing was begun" in hands.error("end", tool_use_id="x", outcome="done").told
    use = hands.use()
    hands.begin({"path": "a.txt", "kind": "create"}, use=use)
    error = hands.error(
        "end", tool_use_id=use, outcome="done", files=[{"number": 1}, {"number": 7}]
    )
    assert error.code == INVALID
    assert "c7" in error.told
    assert hands("list", open_only=True)["changes"][0]["state"] == "begun"


def test_all_files_are_begun_or_none(hands: Hands) -> None:
    (hands.project / "a.txt").write_text("a")
    error = hands.error(
        "begin",
        tool_use_id="one",
        tool="t",
        files=[{"path": "a.txt", "kind": "edit"}, {"path": "../b", "kind": "edit"}],
    )
    assert error.data["fields"][0]["field"] == "files.1.path"
    assert "../b" in error.told
    assert hands("list")["changes"] == []


@pytest.mark.parametrize(
    ("file", "told"),
    [
        ({"path": "none", "kind": "delete"}, "no such file"),
        ({"path": "none", "kind": "rename", "to": "b"}, "no such file"),
        ({"path": "a", "kind": "rename"}, "a rename needs"),
        ({"path": "a", "kind": "edit", "to": "b"}, "only a rename takes one"),
        ({"path": "a", "kind": "rename", "to": "taken"}, "taken: there is a file already"),
        ({"path": "a", "kind": "rename", "to": "a"}, "there is a file already"),
        ({"path": "a", "kind": "rename", "to": ".git/x"}, "git's own folder"),
        ({"path": "link", "kind": "delete"}, "a link to a; name that file"),
        ({"path": "link", "kind": "rename", "to": "b"}, "a link to a; name that file"),
        ({"path": "a", "kind": "truncate"}, "kind"),
    ],
)
def test_what_cannot_be_done_to_a_file_is_refused(
    hands: Hands, file: dict[str, str], told: str
) -> None:
    (hands.project / "a").write_text("a")
    (hands.project / "taken").write_text("b")
    (hands.project / "link").symlink_to("a")
    error = hands.error("begin", tool_use_id="one", tool="t", files=[file])
    assert error.code == INVALID
    assert told in error.told


def test_a_file_named_twice_is_refused_whatever_it_is_called(hands: Hands) -> None:
    (hands.project / "a").write_text("a")
    for other in ({"path": "./a", "kind": "delete"}, {"path": "b", "kind": "create"}):
        rename = {"path": "a", "kind": "rename", "to": "b"}
        error = hands.error("begin", tool_use_id="one", tool="t", files=[rename, other])
        assert "named twice" in error.told


def test_a_rename_that_did_not_happen_is_not_done(hands: Hands) -> None:
    (hands.project / "a").write_text("a")
    use = hands.use()
    hands.begin({"path": "a", "kind": "rename", "to": "b"}, use=use)
    error = hands.error("end", tool_use_id=use, outcome="done")
    assert error.code == FAILED
    assert "abandoned" in error.message
    assert hands("end", tool_use_id=use, outcome="abandoned")["changes"][0]["state"] == "abandoned"


def test_a_file_of_100_megabytes_is_kept_and_a_larger_one_is_refused(hands: Hands) -> None:
    file = hands.project / "large"
    with file.open("wb") as opened:
        opened.truncate(100 * MEGABYTE)
    number = hands.edit("large", b"small")
    hands("undo", number=number)
    assert file.stat().st_size == 100 * MEGABYTE
    os.truncate(file, 100 * MEGABYTE + 1)
    error = hands.error(
        "begin", tool_use_id="one", tool="t", files=[{"path": "large", "kind": "edit"}]
    )
    assert error.code == FAILED
    assert "100 MB" in error.message
    assert "large" in error.message


def test_a_closed_session_begins_no_change_and_still_undoes_those_it_made(hands: Hands) -> None:
    number = hands.create("a.txt", "a")
    hands.sidecar.request("session/close", session_id=hands.session)
    error = hands.error(
        "begin", tool_use_id="one", tool="t", files=[{"path": "b", "kind": "create"}]
    )
    assert error.code == SessionClosedError.code
    hands("undo", number=number)
    assert tree(hands.project) == {}


@pytest.mark.process
def test_what_was_changed_is_undone_after_a_restart(
    hands: Hands, sidecar: Sidecar, project: Path
) -> None:
    (project / "a.txt").write_text("before")
    number = hands.edit("a.txt", "after")
    sidecar.kill()
    with LocalSidecar() as other:
        again = Hands(other, project, hands.session)
        assert again.now(number) == "as_left"
        again("undo", number=number)
    assert (project / "a.txt").read_text() == "before"


def test_two_sessions_keep_their_changes_apart(hands: Hands) -> None:
    opened = hands.sidecar.request("session/open", root=str(hands.project))
    other = Hands(hands.sidecar, hands.project, opened["session_id"])
    assert hands.create("a.txt", "same") == 1
    assert other.create("b.txt", "same") == 1
    other("undo", number=1)
    assert (hands.project / "a.txt").exists()
    assert not (hands.project / "b.txt").exists()
