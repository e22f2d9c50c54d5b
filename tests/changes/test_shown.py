"""Lists and diffs of changes."""

from __future__ import annotations

import itertools

from tests.changes.hands import Hands


def test_changes_are_listed_with_how_their_files_stand_the_latest_last(hands: Hands) -> None:
    (hands.project / "a").write_text("one\ntwo\n")
    edited = hands.edit("a", "one\n2\nthree\n")
    renamed = hands.rename("a", "b")
    begun = hands.begin({"path": "c", "kind": "create"}, use="open")[0]["number"]
    listed = hands("list")["changes"]
    first = listed[0]
    assert isinstance(first.pop("created"), float)
    assert first.pop("tool_use_id").startswith("toolu_")
    assert first == {
        "number": edited,
        "label": f"c{edited}",
        "tool": "a_tool",
        "kind": "edit",
        "path": "a",
        "to": None,
        "state": "done",
        "to_report": False,
        "added": 2,
        "removed": 1,
        "now": "as_left",
    }
    assert [one["number"] for one in listed] == [edited, renamed, begun]
    assert (listed[1]["kind"], listed[1]["to"], listed[1]["now"]) == ("rename", "b", "as_left")
    assert (listed[2]["state"], listed[2]["added"], listed[2]["now"]) == ("begun", None, "undone")
    still_open = hands("list", open_only=True)["changes"]
    assert [one["tool_use_id"] for one in still_open] == ["open"]


def test_only_the_last_change_of_a_file_is_changed_by_what_the_person_writes(hands: Hands) -> None:
    (hands.project / "a").write_text("0")
    first, second = hands.edit("a", "1"), hands.edit("a", "2")
    assert [hands.now(first), hands.now(second)] == ["as_left", "as_left"]
    (hands.project / "a").write_text("by hand")
    assert [hands.now(first), hands.now(second)] == ["as_left", "changed"]


def test_what_the_person_wrote_between_two_changes_is_told_of_the_first(hands: Hands) -> None:
    (hands.project / "a").write_text("0")
    first = hands.edit("a", "1")
    (hands.project / "a").write_text("by hand")
    second = hands.edit("a", "2")
    assert [hands.now(first), hands.now(second)] == ["changed", "as_left"]


def test_a_change_is_shown_with_its_diff_and_what_came_later(hands: Hands) -> None:
    (hands.project / "a").write_text("one\ntwo\n")
    number = hands.edit("a", "one\n2\n")
    shown = hands("show", number=number)
    assert shown["diff"] == "--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
    assert (shown["since"], shown["now"], shown["cut"]) == (None, "as_left", False)
    assert shown["file"] == str(hands.project / "a")
    (hands.project / "a").write_text("one\n2\nthree\n")
    shown = hands("show", number=number)
    assert shown["since"] == "--- a/a\n+++ b/a\n@@ -1,2 +1,3 @@\n one\n 2\n+three\n"
    assert shown["now"] == "changed"
    hands("undo", number=number, force=True)
    shown = hands("show", number=number)
    assert (shown["since"], shown["now"], shown["state"]) == (None, "undone", "undone")
    assert "-two\n+2\n" in shown["diff"]


def test_creating_deleting_and_renaming_are_shown_as_such(hands: Hands) -> None:
    created = hands.create("a", "a\n")
    renamed = hands.rename("a", "b")
    deleted = hands.delete("b")
    diffs = [hands("show", number=number)["diff"] for number in (created, renamed, deleted)]
    assert diffs == [
        "--- /dev/null\n+++ b/a\n@@ -0,0 +1 @@\n+a\n",
        "diff --git a/a b/b\nrename from a\nrename to b\n",
        "--- a/b\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n",
    ]


def test_a_change_of_an_unsaved_buffer_is_shown_by_its_text(hands: Hands) -> None:
    (hands.project / "a").write_bytes(b"saved\r\n")
    for number, (before, after) in enumerate(
        itertools.product([None, "unsaved\n"], [None, "edited\n"]), 1
    ):
        use = hands.use()
        hands.begin({"path": "a", "kind": "edit", "buffer_text": before}, use=use)
        texts = [{"number": number, "buffer_text": after}]
        hands("end", tool_use_id=use, outcome="done", files=texts)
        shown = hands("show", number=number)
        old, new = before or "saved\n", after or "saved\n"
        expected = "" if old == new else f"--- a/a\n+++ b/a\n@@ -1 +1 @@\n-{old}+{new}"
        assert shown["diff"] == expected
        assert (shown["buffer_text_before"], shown["buffer_text_after"]) == (before, after)
        assert shown["before"] == shown["after"]
        assert (shown["added"], shown["removed"]) == ((0, 0) if old == new else (1, 1))


def test_a_change_of_whose_end_nobody_told_shows_what_is_there_now(hands: Hands) -> None:
    (hands.project / "a").write_text("before\n")
    number = hands.begin({"path": "a", "kind": "edit"})[0]["number"]
    assert hands("show", number=number)["since"] is None
    (hands.project / "a").write_text("after\n")
    shown = hands("show", number=number)
    assert (shown["diff"], shown["after"], shown["now"]) == ("", None, "unknown")
    assert "-before\n+after\n" in shown["since"]


def test_long_texts_are_shown_as_far_as_is_asked_for(hands: Hands) -> None:
    number = hands.create("a", "line\n" * 1000)
    whole = hands("show", number=number)
    cut = hands("show", number=number, most=100)
    assert not whole["cut"]
    assert cut["cut"]
    assert cut["diff"] == whole["diff"][:100]


def test_a_name_that_is_no_utf_8_is_shown_and_meant_as_git_quotes_it(hands: Hands) -> None:
    folder = bytes(hands.project)
    name, quoted = b"caf\xe9 \n", '"caf\\351 \\n"'
    with open(folder + b"/" + name, "wb") as file:
        file.write(b"before")
    begun = hands.begin({"path": quoted, "kind": "rename", "to": '"new\\tb\\377/c"'}, use="one")
    assert begun[0]["path"] == quoted
    assert begun[0]["file"] == f'"{hands.project}/{quoted[1:]}'
    (hands.project / "new\tb\udcff").mkdir()
    (hands.project / "caf\udce9 \n").rename(hands.project / "new\tb\udcff" / "c")
    hands("end", tool_use_id="one", outcome="done")
    assert hands("list")["changes"][0]["to"] == '"new\\tb\\377/c"'
    assert '\nrename to "new\\tb\\377/c"\n' in hands("show", number=1)["diff"]
    hands("undo", number=1)
    assert [entry.name for entry in hands.project.iterdir()] == ["caf\udce9 \n"]
