"""Tests of `vcs_diff`, through a real sidecar and git."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.repository import Repository
from tests.tools.conftest import Call, shown

LINES = "".join(f"line {number}\n" for number in range(1, 41))


@pytest.fixture
def changed(repository: Repository) -> Repository:
    """Two files changed in three places."""
    repository.commit("first", **{"b.txt": LINES, "a/é.txt": "one\ntwo\n"})
    repository.write("b.txt", LINES.replace("line 3\n", "LINE 3\n").replace("line 30\n", ""))
    repository.write("a/é.txt", "one\ntwo\nthree\n")
    return repository


def test_the_stat_comes_first_then_the_hunks_under_their_files(
    call: Call, changed: Repository
) -> None:
    envelope = call("vcs_diff", context=1)
    assert envelope["status"] == "success"
    assert shown(envelope).splitlines() == [
        "2 files, +2 -2",
        "M a/é.txt +1",
        "M b.txt +1 -2",
        "",
        "M a/é.txt",
        "@@ -2 +2,2 @@ one",
        " two",
        "+three",
        "M b.txt",
        "@@ -2,3 +2,3 @@ line 1",
        " line 2",
        "-line 3",
        "+LINE 3",
        " line 4",
        "@@ -29,3 +29,2 @@ line 28",
        " line 29",
        "-line 30",
        " line 31",
    ]
    files = [
        {"path": "a/é.txt", "status": "M", "additions": 1, "deletions": 0, "binary": False},
        {"path": "b.txt", "status": "M", "additions": 1, "deletions": 2, "binary": False},
    ]
    assert envelope["data"]["files"] == files
    assert (envelope["data"]["total"], envelope["data"]["returned"]) == (3, 3)


def test_the_stat_alone_gives_the_files_as_items(call: Call, changed: Repository) -> None:
    envelope = call("vcs_diff", stat_only=True)
    assert shown(envelope).splitlines() == ["2 files, +2 -2", "M a/é.txt +1", "M b.txt +1 -2"]
    assert [file["path"] for file in envelope["data"]["files"]] == ["a/é.txt", "b.txt"]
    assert envelope["data"]["total"] == 2


def test_staged_unstaged_and_both_are_three_things(call: Call, repository: Repository) -> None:
    repository.commit("first", a="1\n")
    repository.write("a", "2\n")
    repository.git("add", "a")
    repository.write("a", "3\n")
    assert "-1\n+2" in shown(call("vcs_diff", staged=True))
    assert "-2\n+3" in shown(call("vcs_diff"))
    assert "-1\n+3" in shown(call("vcs_diff", revision="HEAD"))
    repository.git("commit", "-q", "-a", "-m", "x")
    assert shown(call("vcs_diff", staged=True)) == "Nothing is staged."
    assert shown(call("vcs_diff")).startswith("No changes that are not staged.")


def test_revisions_name_one_commit_two_or_what_one_changed(
    call: Call, repository: Repository
) -> None:
    first = repository.commit("first", a="1\n")
    repository.git("checkout", "-q", "-b", "side")
    repository.commit("side", s="s\n")
    repository.git("checkout", "-q", "main")
    repository.commit("second", a="2\n")
    repository.git("tag", "-a", "-m", "tagged", "v2")

    def changes(revision: str) -> list[str]:
        files = call("vcs_diff", revision=revision)["data"]["files"]
        return [f"{file['status']} {file['path']}" for file in files]

    assert changes(f"{first}..v2") == changes(f"{first}..") == changes("HEAD~1..main") == ["M a"]
    assert changes("v2..side") == changes("main@{0}..side") == ["M a", "A s"]
    assert changes("v2...side") == ["A s"]
    assert changes("v2^!") == ["M a"]
    assert changes("HEAD~1^!") == ["A a"]
    assert shown(call("vcs_diff", revision="HEAD..HEAD")) == "No differences."


@pytest.mark.parametrize(
    "revision",
    [
        *("nope", "-p", "--output=written", "HEAD:a", ":a", "HEAD..HEAD:a", "a b", "HEAD\n", " "),
        *("HEAD..--output=written", "HEAD --output=written", "HEAD@{99}", "HEAD^{tree}", "..nope"),
    ],
)
def test_what_is_no_commit_is_refused_with_advice(
    call: Call, repository: Repository, revision: str
) -> None:
    repository.commit("first", a="1\n")
    envelope = call("vcs_diff", revision=revision)
    assert envelope["status"] == "error"
    assert "Traceback" not in envelope["message"]
    assert not (repository.folder / "written").exists()


def test_a_range_cannot_be_staged(call: Call, repository: Repository) -> None:
    repository.commit("first", a="1\n")
    envelope = call("vcs_diff", revision="HEAD..HEAD", staged=True)
    assert envelope["status"] == "error"
    assert "not both" in envelope["message"]


def test_added_deleted_renamed_and_mode_changes_are_told_as_such(
    call: Call, repository: Repository
) -> None:
    repository.commit("first", **{"old name": LINES, "gone": "x\n", "mode": "m\n", "kind": "k\n"})
    repository.git("mv", "old name", "new name")
    (repository.folder / "gone").unlink()
    (repository.folder / "mode").chmod(0o755)
    (repository.folder / "kind").unlink()
    (repository.folder / "kind").symlink_to("mode")
    repository.write("script", "#!/bin/sh\n").chmod(0o755)
    repository.git("add", "--all")
    envelope = call("vcs_diff", staged=True)
    wanted = [
        "5 files, +2 -2",
        "D gone -1",
        "T kind +1 -1 (link, mode 100644 → 120000)",
        "M mode (mode 100644 → 100755)",
        "R old name → new name",
        "A script +1 (mode 100755)",
    ]
    assert sorted(shown(envelope).split("\n\n")[0].splitlines()) == sorted(wanted)
    renamed = next(file for file in envelope["data"]["files"] if file["status"] == "R")
    assert (renamed["old_path"], renamed["path"]) == ("old name", "new name")
    counted = shown(call("vcs_diff", staged=True, stat_only=True)).splitlines()
    assert sorted(line.partition(" (")[0] for line in counted) == sorted(
        line.partition(" (")[0] for line in wanted
    )


def test_a_stat_longer_than_a_page_is_whole_before_the_hunks_begin(
    call: Call, repository: Repository
) -> None:
    names = [f"folder/file-{number:03}.txt" for number in range(200)]
    repository.commit("first", **dict.fromkeys(names, "1\n"))
    for name in names:
        repository.write(name, "2\n")
    pages = [call("vcs_diff", max_tokens=1000)]
    assert "Showing none yet of 200 hunks." in pages[0]["text"]
    while (token := pages[-1]["data"].get("continuation_token")) is not None:
        pages.append(call("vcs_diff", continuation_token=token, max_tokens=1000))
        assert pages[-1]["data"].get("continuation_token") != token
    text = "\n".join(page["text"] for page in pages)
    assert re.findall(r"^M (\S+) \+1 -1$", text, re.MULTILINE) == names
    assert sum(page["data"]["returned"] for page in pages) == 200
    assert text.count("\n-1\n+2\n") == 200
    assert text.index(f"M {names[-1]} +1") < text.index("@@")


def test_a_path_narrows_even_when_the_file_is_gone(call: Call, changed: Repository) -> None:
    files = call("vcs_diff", path="a")["data"]["files"]
    assert [file["path"] for file in files] == ["a/é.txt"]
    (changed.folder / "b.txt").unlink()
    assert call("vcs_diff", path="b.txt")["data"]["files"][0]["status"] == "D"
    assert "not on the disk either" in shown(call("vcs_diff", path="nope"))


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a/../../x", "x\0y", "out/x"])
def test_a_path_outside_the_project_is_refused(
    call: Call, repository: Repository, path: str, tmp_path: Path
) -> None:
    repository.commit("first", a="1\n")
    (repository.folder / "out").symlink_to(tmp_path)
    assert call("vcs_diff", path=path)["status"] == "error"


@pytest.mark.parametrize("context", [0, -1, 1001, "few"])
def test_a_context_out_of_range_is_refused_by_name(
    call: Call, repository: Repository, context: Any
) -> None:
    envelope = call("vcs_diff", context=context)
    assert envelope["status"] == "error"
    assert "context" in envelope["message"]


def test_numbers_and_truth_are_understood_as_text_too(call: Call, changed: Repository) -> None:
    assert "line 1\n" in shown(call("vcs_diff", context="40"))
    assert call("vcs_diff", stat_only="true")["data"]["total"] == 2


def test_an_empty_repository_has_a_diff_of_what_is_staged(
    call: Call, repository: Repository
) -> None:
    repository.write("a", "1\n")
    assert call("vcs_diff")["status"] == "success"
    repository.git("add", "a")
    assert "A a +1" in shown(call("vcs_diff", staged=True))
    assert "no commits yet" in call("vcs_diff", revision="HEAD")["message"]


def test_settings_that_change_how_diffs_look_change_nothing(
    call: Call, changed: Repository
) -> None:
    plain = call("vcs_diff")
    for name, value in {
        "color.ui": "always",
        "color.diff": "always",
        "diff.noprefix": "false",
        "diff.mnemonicPrefix": "true",
        "diff.context": "9",
        "diff.interHunkContext": "99",
        "diff.renames": "false",
        "diff.suppressBlankEmpty": "true",
        "diff.wsErrorHighlight": "all",
        "diff.colorMoved": "zebra",
        "diff.relative": "true",
        "diff.orderFile": "order",
        "diff.submodule": "log",
        "core.quotePath": "false",
    }.items():
        changed.git("config", name, value)
    changed.write("order", "b.txt\n")
    again = call("vcs_diff")
    assert again["handle"] != plain["handle"]
    assert shown(again) == f"Same as {plain['handle']}, which is in the window in full."


def test_the_line_that_stays_tells_counts_and_names_by_what_happened(
    call: Call, repository: Repository, shrunk: Callable[[dict[str, Any]], str]
) -> None:
    repository.commit("first", **{"a.el": LINES, "b.el": "1\n"})
    repository.write("a.el", "")
    repository.write("b.el", "2\n")
    repository.write("c.el", LINES)
    repository.git("add", "--all")
    line = shrunk(call("vcs_diff", staged=True))
    assert line == "Diff: 3 files, +41/-41. Modified: a.el, b.el. Added: c.el."
    assert shrunk(call("vcs_diff", staged=True, stat_only=True, path=".")) in ("", line)
