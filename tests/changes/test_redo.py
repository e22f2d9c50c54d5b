"""Redo: the undone changes that are made again, refused, or left alone."""

from __future__ import annotations

from tests.changes.hands import Hands, tree


def test_every_kind_of_change_is_made_again_in_its_order(hands: Hands) -> None:
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
    after = tree(hands.project)
    for _ in range(2):
        for number in reversed(numbers):
            hands("undo", number=number)
        assert tree(hands.project) == before
        for number in numbers:
            assert hands("redo", number=number)["state"] == "done"
            assert hands.now(number) == "as_left"
        assert tree(hands.project) == after


def _to_report(hands: Hands) -> list[int]:
    return [one["number"] for one in hands("list")["changes"] if one["to_report"]]


def test_what_the_person_takes_back_is_to_be_reported_until_it_was(hands: Hands) -> None:
    numbers = [hands.create(name, name) for name in ("a", "b", "c")]
    for number in numbers:
        hands("undo", number=number, by_person=number != numbers[2])
    assert _to_report(hands) == numbers[:2]
    hands("reported", numbers=numbers[:1])
    hands("redo", number=numbers[0], by_person=True)
    assert _to_report(hands) == numbers[:2]
    hands("redo", number=numbers[1], by_person=True)
    assert _to_report(hands) == numbers[:1], "the model knows the state that it is in again"
    hands("undo", number=numbers[0])
    assert _to_report(hands) == [], "the model undid it itself"


def test_permissions_come_back_too(hands: Hands) -> None:
    (hands.project / "run").write_text("a")
    (hands.project / "run").chmod(0o755)
    number = hands.edit("run", "b")
    hands("undo", number=number)
    hands("redo", number=number)
    assert (hands.project / "run").stat().st_mode & 0o777 == 0o755


def test_a_file_changed_since_the_undo_is_left_alone_unless_forced(hands: Hands) -> None:
    (hands.project / "a").write_text("old\n")
    number = hands.edit("a", "new\n")
    hands("undo", number=number)
    (hands.project / "a").write_text("mine\n")
    refused = hands.error("redo", number=number)
    assert refused.code == -32007
    assert "-old\n+mine\n" in refused.data["since"]
    assert (hands.project / "a").read_text() == "mine\n"
    hands("redo", number=number, force=True)
    assert (hands.project / "a").read_text() == "new\n"


def test_what_is_not_undone_is_not_made_again(hands: Hands) -> None:
    number = hands.create("a", "a")
    assert "is not undone" in hands.error("redo", number=number).message
