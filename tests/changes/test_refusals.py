"""The undos that are refused, because they would lose later changes."""

from __future__ import annotations

from pathlib import Path

from tests.changes.hands import FAILED, INVALID, REFUSED, Hands, tree


def test_a_file_that_was_changed_since_is_left_alone_and_the_difference_shown(
    hands: Hands,
) -> None:
    file = hands.project / "a"
    file.write_text("one\ntwo\n")
    number = hands.edit("a", "one\nTWO\n")
    file.write_text("one\nTWO\nby hand\n")
    before = tree(hands.project)
    assert hands.now(number) == "changed"
    error = hands.error("undo", number=number)
    assert error.code == REFUSED
    assert (error.data["number"], error.data["path"]) == (number, "a")
    assert error.data["since"] == "--- a/a\n+++ b/a\n@@ -1,2 +1,3 @@\n one\n TWO\n+by hand\n"
    assert tree(hands.project) == before
    hands("undo", number=number, force=True)
    assert file.read_text() == "one\ntwo\n"


def test_a_file_that_is_gone_or_there_again_since_is_refused(hands: Hands) -> None:
    (hands.project / "a").write_text("a\n")
    (hands.project / "b").write_text("b\n")
    edited, deleted = hands.edit("a", "A\n"), hands.delete("b")
    (hands.project / "a").unlink()
    (hands.project / "b").write_text("mine\n")
    assert "-A" in hands.error("undo", number=edited).data["since"]
    assert "+mine" in hands.error("undo", number=deleted).data["since"]
    hands("undo", number=edited, force=True)
    hands("undo", number=deleted, force=True)
    assert (hands.project / "a").read_text() == "a\n"
    assert (hands.project / "b").read_text() == "b\n"


def test_a_rename_is_not_undone_over_a_file_that_took_the_old_name(hands: Hands) -> None:
    (hands.project / "a").write_text("a\n")
    number = hands.rename("a", "b")
    (hands.project / "a").write_text("mine\n")
    before = tree(hands.project)
    assert "+mine" in hands.error("undo", number=number).data["since"]
    assert tree(hands.project) == before
    hands("undo", number=number, force=True)
    assert {name: held for name, (_, held) in tree(hands.project).items()} == {"a": b"a\n"}


def test_a_renamed_file_that_was_changed_since_is_refused(hands: Hands) -> None:
    (hands.project / "a").write_text("a\n")
    number = hands.rename("a", "b")
    (hands.project / "b").write_text("a\nmine\n")
    assert "+mine" in hands.error("undo", number=number).data["since"]
    assert (hands.project / "b").read_text() == "a\nmine\n"


def test_a_file_that_somebody_put_back_already_needs_no_undo_and_is_no_refusal(
    hands: Hands,
) -> None:
    (hands.project / "a").write_text("before")
    number = hands.edit("a", "after")
    (hands.project / "a").write_text("before")
    assert hands.now(number) == "undone"
    assert hands("undo", number=number)["state"] == "undone"


def test_an_earlier_change_of_a_file_is_not_undone_before_a_later_one(hands: Hands) -> None:
    (hands.project / "a").write_text("0")
    first, second, third = (hands.edit("a", text) for text in "123")
    hands.create("b", "b")
    error = hands.error("undo", number=first)
    assert error.code == REFUSED
    assert f"undo c{third}, c{second} first" in error.message
    for number in (third, second, first):
        hands("undo", number=number)
    assert (hands.project / "a").read_text() == "0"


def test_a_rename_stands_in_the_way_of_what_was_done_under_the_old_name(hands: Hands) -> None:
    (hands.project / "a").write_text("0")
    edited = hands.edit("a", "1")
    renamed = hands.rename("a", "b")
    later = hands.edit("b", "2")
    assert f"undo c{renamed} first" in hands.error("undo", number=edited).message
    assert f"undo c{later} first" in hands.error("undo", number=renamed).message


def test_forced_an_earlier_change_is_undone_over_a_later_one(hands: Hands) -> None:
    (hands.project / "a").write_text("0")
    first = hands.edit("a", "1")
    second = hands.edit("a", "2")
    hands("undo", number=first, force=True)
    assert (hands.project / "a").read_text() == "0"
    assert hands.error("undo", number=second).code == REFUSED


def test_what_is_undone_is_not_undone_again(hands: Hands) -> None:
    number = hands.create("a", "a")
    hands("undo", number=number)
    (hands.project / "a").write_text("mine")
    for force in (False, True):
        error = hands.error("undo", number=number, force=force)
        assert error.code == FAILED
        assert "undone already" in error.message
    assert (hands.project / "a").read_text() == "mine"


def test_a_number_that_there_is_not_is_told_with_those_there_are(hands: Hands) -> None:
    hands.create("a", "a")
    for method in ("undo", "show"):
        error = hands.error(method, number=9)
        assert error.code == INVALID
        assert "no change c9; the latest are: c1" in error.told


def test_a_change_of_whose_end_nobody_told_is_undone_where_nothing_happened(hands: Hands) -> None:
    (hands.project / "a").write_text("before")
    number = hands.begin({"path": "a", "kind": "edit"})[0]["number"]
    assert hands.now(number) == "undone"
    undone = hands("undo", number=number)
    assert undone.pop("stamp") == "6-{}{:09}".format(*undone.pop("modified"))
    assert undone | {"file": ""} == {
        "number": number,
        "path": "a",
        "to": None,
        "state": "undone",
        "file": "",
        "exists": True,
        "sha256": hands("show", number=number)["before"],
        "disk": False,
        "buffer_text": None,
    }


def test_a_change_of_whose_end_nobody_told_is_refused_where_something_happened(
    hands: Hands,
) -> None:
    file = hands.project / "a"
    file.write_text("before\n")
    number = hands.begin({"path": "a", "kind": "edit"})[0]["number"]
    file.write_text("after\n")
    assert hands.now(number) == "unknown"
    error = hands.error("undo", number=number)
    assert error.code == REFUSED
    assert "its end was not recorded" in error.message
    assert "-before\n+after\n" in error.data["since"]
    hands("undo", number=number, force=True)
    assert file.read_text() == "before\n"


def test_a_rename_of_whose_end_nobody_told_is_put_back_when_forced(hands: Hands) -> None:
    (hands.project / "a").write_text("a\n")
    before = tree(hands.project)
    number = hands.begin({"path": "a", "kind": "rename", "to": "new/b"})[0]["number"]
    (hands.project / "new").mkdir()
    (hands.project / "a").rename(hands.project / "new" / "b")
    assert hands.error("undo", number=number).code == REFUSED
    hands("undo", number=number, force=True)
    assert tree(hands.project) == before


# What took the place of a file


def test_a_link_that_took_the_place_of_a_folder_is_not_followed(
    hands: Hands, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "a").write_text("the person's")
    inside = hands.project / "inside"
    inside.mkdir()
    (inside / "a").write_text("the person's too")
    number = hands.create("folder/a", "the person's")
    other = hands.create("other/a", "the person's too")
    for name, target in (("folder", elsewhere), ("other", inside)):
        (hands.project / name / "a").unlink()
        (hands.project / name).rmdir()
        (hands.project / name).symlink_to(target)
    assert "outside the project" in hands.error("undo", number=number, force=True).message
    assert "by a link" in hands.error("undo", number=other, force=True).message
    assert hands.now(number) == "unknown"
    assert (elsewhere / "a").read_text() == "the person's"
    assert (inside / "a").read_text() == "the person's too"


def test_a_folder_that_took_the_place_of_a_file_is_left_alone(hands: Hands) -> None:
    (hands.project / "a").write_text("a")
    number = hands.edit("a", "b")
    (hands.project / "a").unlink()
    (hands.project / "a").mkdir()
    for force in (False, True):
        assert hands.error("undo", number=number, force=force).code == FAILED
    assert (hands.project / "a").is_dir()
    assert hands.now(number) == "unknown"
