"""Undo: the changes that are undone, refused, or left alone."""

from __future__ import annotations

import os
import stat
import subprocess

import pytest

from tests.changes.hands import INVALID, Hands, tree


def test_every_kind_of_change_is_undone_in_reverse_order(hands: Hands) -> None:
    (hands.project / "kept").mkdir()
    (hands.project / "kept" / "a.txt").write_text("a")
    (hands.project / "b.txt").write_text("b")
    before = tree(hands.project)
    numbers = [
        hands.edit("b.txt", "changed"),
        hands.rename("b.txt", "new/deep/c.txt"),
        hands.edit("new/deep/c.txt", "changed again"),
        hands.delete("kept/a.txt"),
        hands.create("kept/a.txt", "another"),
        hands.create("other/d.txt", "d"),
    ]
    for number in reversed(numbers):
        assert hands.now(number) == "as_left"
        assert hands("undo", number=number)["state"] == "undone"
        assert hands.now(number) == "undone"
    assert tree(hands.project) == before


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\r\n",
        b"a\r\nb\r\n",
        b"no newline at the end",
        b"\0\xff\xfe" * 100,
        b"\xef\xbb\xbfbom",
    ],
    ids=["empty", "one CRLF", "CRLF", "no newline", "binary", "BOM"],
)
def test_every_byte_comes_back(hands: Hands, data: bytes) -> None:
    (hands.project / "a").write_bytes(data)
    number = hands.edit("a", b"something\nelse\n")
    assert hands("undo", number=number)["exists"]
    assert (hands.project / "a").read_bytes() == data


def test_undoing_tells_what_is_there_now(hands: Hands) -> None:
    created = hands.create("a", "a")
    renamed = hands.rename("a", "b")
    told = hands("undo", number=renamed)
    assert (told["path"], told["to"], told["exists"], told["disk"]) == ("a", "b", True, True)
    assert told["file"] == str(hands.project / "a")
    told = hands("undo", number=created)
    assert (told["exists"], told["sha256"], told["disk"]) == (False, None, True)


def test_permissions_come_back(hands: Hands) -> None:
    file = hands.project / "run.sh"
    file.write_text("#!/bin/sh\n")
    file.chmod(0o754)

    def as_emacs_may_do() -> None:
        file.unlink()
        file.write_text("changed")
        file.chmod(0o600)

    number = hands.changed(as_emacs_may_do, {"path": "run.sh", "kind": "edit"})[0]
    hands("undo", number=number)
    assert stat.S_IMODE(file.stat().st_mode) == 0o754
    number = hands.delete("run.sh")
    hands("undo", number=number)
    assert stat.S_IMODE(file.stat().st_mode) == 0o754


def test_permissions_that_the_person_gave_since_are_kept(hands: Hands) -> None:
    file = hands.project / "run.sh"
    file.write_text("before")
    number = hands.edit("run.sh", "after")
    file.chmod(0o711)
    hands("undo", number=number)
    assert file.read_text() == "before"
    assert stat.S_IMODE(file.stat().st_mode) == 0o711


def test_a_read_only_file_is_put_back_read_only(hands: Hands) -> None:
    file = hands.project / "a"
    file.write_text("before")
    file.chmod(0o444)
    number = hands.edit("a", "after")
    hands("undo", number=number)
    assert (file.read_text(), stat.S_IMODE(file.stat().st_mode)) == ("before", 0o444)


def test_what_a_link_leads_to_is_put_back_and_the_link_stays(hands: Hands) -> None:
    (hands.project / "real").write_text("before")
    (hands.project / "link").symlink_to("real")
    before = tree(hands.project)
    number = hands.edit("link", "after")
    assert hands("show", number=number)["path"] == "real"
    hands("undo", number=number)
    assert tree(hands.project) == before


def test_no_file_is_left_beside_the_one_put_back(hands: Hands) -> None:
    (hands.project / "a").write_text("before")
    hands("undo", number=hands.edit("a", "after"))
    assert list(tree(hands.project)) == ["a"]


# Folders


def test_folders_that_a_change_made_go_if_nothing_else_is_in_them(hands: Hands) -> None:
    number = hands.create("one/two/a", "a")
    (hands.project / "one" / "mine").write_text("the person's")
    hands("undo", number=number)
    assert list(tree(hands.project)) == ["one", "one/mine"]


def test_folders_that_were_there_stay_empty_as_they_were(hands: Hands) -> None:
    (hands.project / "empty" / "inner").mkdir(parents=True)
    before = tree(hands.project)
    hands("undo", number=hands.create("empty/inner/a", "a"))
    assert tree(hands.project) == before


def test_a_folder_goes_with_the_last_file_in_it_in_whatever_order(hands: Hands) -> None:
    first, second = hands.create("new/a", "a"), hands.create("new/b", "b")
    hands("undo", number=first)
    assert list(tree(hands.project)) == ["new", "new/b"]
    hands("undo", number=second)
    assert tree(hands.project) == {}


def test_a_deleted_file_comes_back_where_its_folder_is_gone_too(hands: Hands) -> None:
    (hands.project / "one").mkdir()
    (hands.project / "one" / "a").write_text("a")
    number = hands.delete("one/a")
    (hands.project / "one").rmdir()
    hands("undo", number=number)
    assert (hands.project / "one" / "a").read_text() == "a"


# Buffers


def test_undoing_a_change_of_an_unsaved_buffer_changes_no_file(hands: Hands) -> None:
    file = hands.project / "a"
    file.write_text("saved")
    use = hands.use()
    begun = hands.begin({"path": "a", "kind": "edit", "buffer_text": "unsaved"}, use=use)
    number = begun[0]["number"]
    texts = [{"number": number, "buffer_text": "unsaved, edited"}]
    hands("end", tool_use_id=use, outcome="done", files=texts)
    before = file.stat().st_mtime_ns
    told = hands("undo", number=number)
    assert (told["disk"], told["buffer_text"], told["state"]) == (False, "unsaved", "undone")
    assert (file.read_text(), file.stat().st_mtime_ns) == ("saved", before)


def test_a_buffer_that_the_change_saved_comes_with_what_it_held_unsaved(hands: Hands) -> None:
    file = hands.project / "a"
    file.write_text("saved")
    edited = {"path": "a", "kind": "edit", "buffer_text": "unsaved"}
    number = hands.changed(lambda: file.write_text("unsaved, edited"), edited)[0]
    told = hands("undo", number=number)
    assert (told["disk"], told["buffer_text"]) == (True, "unsaved")
    assert file.read_text() == "saved"


def unsaved_edit(hands: Hands, before: str, after: str) -> int:
    """Edit the unsaved buffer of `a` and leave it unsaved."""
    use = hands.use()
    number: int = hands.begin({"path": "a", "kind": "edit", "buffer_text": before}, use=use)[0][
        "number"
    ]
    texts = [{"number": number, "buffer_text": after}]
    hands("end", tool_use_id=use, outcome="done", files=texts)
    return number


def test_a_buffer_that_the_person_saved_as_the_change_left_it_was_not_changed_since(
    hands: Hands,
) -> None:
    file = hands.project / "a"
    file.write_bytes(b"saved\r\n")
    number = unsaved_edit(hands, "mine\n", "mine\nedited\n")
    assert hands.now(number) == "as_left"
    file.write_bytes(b"mine\r\nedited\r\n")
    assert hands.now(number) == "as_left"
    assert hands("show", number=number)["since"] is None
    later = hands.edit("a", "later")
    assert hands.now(number) == "as_left"
    hands("undo", number=later)
    told = hands("undo", number=number)
    assert (told["disk"], told["buffer_text"]) == (True, "mine\n")
    assert file.read_bytes() == b"saved\r\n"


def test_what_the_person_wrote_before_saving_a_buffer_is_shown_alone(hands: Hands) -> None:
    file = hands.project / "a"
    file.write_text("saved\n")
    number = unsaved_edit(hands, "mine\n", "mine\nedited\n")
    file.write_text("mine\nedited\nby hand\n")
    since = "--- a/a\n+++ b/a\n@@ -1,2 +1,3 @@\n mine\n edited\n+by hand\n"
    assert hands.now(number) == "changed"
    assert hands("show", number=number)["since"] == since
    assert hands.error("undo", number=number).data["since"] == since


def test_an_empty_buffer_is_not_the_same_as_none(hands: Hands) -> None:
    (hands.project / "a").write_text("saved")
    edited = {"path": "a", "kind": "edit", "buffer_text": ""}
    number = hands.changed(lambda: (hands.project / "a").write_text("b"), edited)[0]
    assert hands("undo", number=number)["buffer_text"] == ""


# Git


def test_undoing_touches_neither_index_nor_stash_nor_branches(hands: Hands) -> None:
    git = ["git", "-c", "user.name=n", "-c", "user.email=e"]
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run([*git, *command], cwd=hands.project, check=True)
    (hands.project / "a").write_text("staged")
    subprocess.run([*git, "add", "a"], cwd=hands.project, check=True)
    before = tree(hands.project)
    numbers = [hands.edit("a", "changed"), hands.rename("a", "b"), hands.delete("b")]
    for number in reversed(numbers):
        hands("undo", number=number)
    assert tree(hands.project) == before


# Checkpoints


def test_a_checkpoint_tells_what_to_undo_to_come_back_to_it(hands: Hands) -> None:
    first = hands("checkpoint")
    assert (first["checkpoint"], first["after"], first["label"]) == ("k1", 0, "")
    (hands.project / "b").write_text("b")
    hands.create("a", "a")
    at_second = tree(hands.project)
    second = hands("checkpoint", label="all well")
    assert (second["checkpoint"], second["after"]) == ("k2", 1)
    hands.edit("a", "A")
    hands("undo", number=hands.create("undone", "u"))
    hands.rename("b", "new/b")
    hands.delete("a")
    abandoned = hands.use()
    hands.begin({"path": "never", "kind": "create"}, use=abandoned)
    hands("end", tool_use_id=abandoned, outcome="abandoned")
    numbers = hands("since", checkpoint="k2")["numbers"]
    assert numbers == [5, 4, 2]
    for number in numbers:
        hands("undo", number=number)
    assert tree(hands.project) == at_second
    assert hands("since", checkpoint="k1")["numbers"] == [1]
    assert hands("since", checkpoint="k2")["numbers"] == []
    listed = hands("list")["checkpoints"]
    assert [(one["checkpoint"], one["label"]) for one in listed] == [("k1", ""), ("k2", "all well")]


def test_a_checkpoint_that_there_is_not_is_told_with_those_there_are(hands: Hands) -> None:
    hands("checkpoint")
    error = hands.error("since", checkpoint="k7")
    assert error.code == INVALID
    assert "no k7; there are: k1" in error.told


def test_a_file_that_is_put_back_keeps_its_owner_and_group(hands: Hands) -> None:
    file = hands.project / "a"
    file.write_text("before")
    owner = (file.stat().st_uid, 12345 if os.geteuid() == 0 else file.stat().st_gid)
    os.chown(file, *owner)
    hands("undo", number=hands.edit("a", "after"))
    assert file.read_text() == "before"
    assert (file.stat().st_uid, file.stat().st_gid) == owner


def test_a_later_change_that_a_command_took_back_does_not_prevent_an_undo(hands: Hands) -> None:
    created = hands.create("a", "a")
    renamed = hands.rename("a", "b")
    (hands.project / "b").rename(hands.project / "a")
    assert hands.now(renamed) == "undone"
    assert not hands("undo", number=created)["exists"]
    assert tree(hands.project) == {}
