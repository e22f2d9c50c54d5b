"""The texts in `vcs_diff`: names, bytes, secrets, binary files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.repository import Repository
from tests.tools.conftest import Call, shown

LINES = "".join(f"line {number}\n" for number in range(1, 41))


def test_binary_files_and_pointers_to_large_files_are_told_as_what_they_are(
    call: Call, repository: Repository
) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize {}\n"
    repository.commit("first", bin=b"\0a", large=pointer.format("a" * 64, 1))
    repository.write("bin", b"\0b")
    repository.write("large", pointer.format("b" * 64, 2))
    text = shown(call("vcs_diff"))
    assert "M bin (binary)" in text
    assert "M large +2 -2 (pointer to a large file (LFS), not its content)" in text
    assert "+size 2" in text


def test_a_file_whose_filter_was_not_run_is_marked(call: Call, repository: Repository) -> None:
    repository.git("config", "filter.case.clean", "tr a-z A-Z")
    repository.commit("first", **{".gitattributes": "*.up filter=case\n", "x.up": "abc\n"})
    os.utime(repository.folder / "x.up", (1, 1))
    assert "(compared as it lies on the disk: its filter was not run)" in shown(call("vcs_diff"))
    assert "filter" not in shown(call("vcs_diff", revision="HEAD^!", path="x.up"))


def test_a_conflict_shows_both_sides(call: Call, repository: Repository) -> None:
    repository.commit("first", a="1\n", b="b\n")
    repository.git("checkout", "-q", "-b", "side")
    repository.commit("side", a="side\n")
    repository.git("checkout", "-q", "main")
    repository.commit("main", a="main\n")
    repository.git("merge", "-q", "side", fails=True)
    repository.write("b", "B\n")
    text = shown(call("vcs_diff"))
    assert text.splitlines()[:3] == ["2 files, +6 -1", "U a +5", "M b +1 -1"]
    assert "++<<<<<<< HEAD\n +main\n++=======\n+ side\n++>>>>>>> side" in text
    assert "U a" in shown(call("vcs_diff", staged=True))
    assert "U a" in shown(call("vcs_diff", stat_only=True))


def test_a_submodule_shows_its_commits_and_nothing_of_its_files(
    call: Call, repository: Repository
) -> None:
    inner = Repository(repository.folder / "inner")
    inner.commit("inner", x="x\n")
    repository.commit("outer")
    second = inner.commit("again", x="xyzzy\n")
    inner.write("x", "dirty xyzzy\n")
    text = shown(call("vcs_diff"))
    assert "M inner +1 -1 (submodule)" in text
    assert f"+Subproject commit {second}" in text
    assert "xyzzy" not in text
    assert "dirty" not in text


@pytest.mark.parametrize(
    "name", [b"new\nline", b"latin\xe9", "größe".encode(), b'"quoted"', b"a b a b", b"b/b b/b"]
)
def test_odd_names_are_shown_so_that_they_can_be_given_back(
    call: Call, repository: Repository, name: bytes
) -> None:
    file = os.fsdecode(name)
    repository.commit("first", **{file: "1\n"})
    repository.write(file, "2\n")
    envelope = call("vcs_diff")
    path = envelope["data"]["files"][0]["path"]
    assert f"\nM {path}\n@@ -1 +1 @@\n-1\n+2" in shown(envelope)
    again = call("vcs_diff", path=path)
    assert again["data"]["files"][0]["path"] == path
    assert again["data"]["total"] == 1


def test_content_that_looks_like_git_s_own_lines_is_content(
    call: Call, repository: Repository
) -> None:
    trick = "diff --git x x\n* Unmerged path y\n@@ -1 +1 @@\n-- x\n++ x\n"
    repository.commit("first", a="", b="1\n")
    repository.write("a", trick)
    repository.write("b", "2\n")
    envelope = call("vcs_diff")
    assert [file["path"] for file in envelope["data"]["files"]] == ["a", "b"]
    assert envelope["data"]["files"][0]["additions"] == 5
    assert "".join(f"+{line}\n" for line in trick.splitlines()) in shown(envelope)


def test_line_ends_of_crlf_are_told_once_or_marked_where_they_are_mixed(
    call: Call, repository: Repository
) -> None:
    repository.commit("first", dos=b"1\r\n2\r\n", mixed=b"1\n2\n")
    repository.write("dos", b"1\r\n3\r\n")
    repository.write("mixed", b"1\r\n2\n")
    text = shown(call("vcs_diff"))
    assert "M dos +1 -1 (CRLF)" in text
    assert "M mixed +1 -1 (␍ marks CRLF)" in text
    assert "-1\n+1␍\n 2" in text
    assert "\r" not in text


def test_bytes_that_are_not_utf8_are_replaced_where_they_stand(
    call: Call, repository: Repository
) -> None:
    repository.commit("first", a=b"x\xe9x\n")
    repository.write("a", b"x\xe8x\n")
    assert "-x\ufffdx\n+x\ufffdx" in shown(call("vcs_diff"))


def test_one_enormous_line_is_paged_within_the_allowance(
    call: Call, repository: Repository
) -> None:
    repository.commit("first", a="x" * 300_000)
    repository.write("a", "word " * 60_000)
    page = call("vcs_diff", max_tokens=2000)
    for _ in range(3):
        token = page["data"]["continuation_token"]
        page = call("vcs_diff", continuation_token=token, max_tokens=2000)
        assert page["tokens"] <= 2000
        assert len(page["text"]) > 1000


def test_the_hunks_of_secret_files_are_left_out_and_named(
    call: Call, repository: Repository
) -> None:
    repository.commit("first", **{".env": "KEY=old-xyzzy\n", "a": "1\n"})
    repository.write(".env", "KEY=xyzzy\n")
    repository.write("a", "2\n")
    envelope = call("vcs_diff")
    assert "xyzzy" not in envelope["text"]
    assert "M .env +1 -1 (secret: hunks left out)" in envelope["text"]
    assert "-1\n+2" in envelope["text"]
    repository.commit("second", **{".env": LINES + "KEY=xyzzy\n"})
    repository.git("mv", ".env", "plain.txt")
    repository.write("plain.txt", LINES + "KEY=xyzzy xyzzy\n")
    assert "R .env → plain.txt +1 -1 (secret" in call("vcs_diff", revision="HEAD")["text"]
    assert "xyzzy" not in call("vcs_diff", revision="HEAD")["text"]


def test_a_secret_file_that_is_asked_for_by_name_is_shown_when_the_person_agrees(
    call: Call, repository: Repository
) -> None:
    repository.commit("first", **{"a/.env": "KEY=old\n"})
    repository.write("a/.env", "KEY=xyzzy\n")
    asked = call("vcs_diff", use="secret", path="a/.env")
    assert asked["status"] == "needs_confirmation"
    assert "a/.env" in asked["confirm"]["question"]
    agreed = call("vcs_diff", use="secret", confirm_id=asked["confirm"]["id"], path="a/.env")
    assert "+KEY=xyzzy" in agreed["text"]
    assert call("vcs_diff", path="a/.env", stat_only=True)["status"] == "success"
    assert "xyzzy" not in call("vcs_diff", path="a")["text"]


def test_a_link_is_a_file_that_holds_a_path(
    call: Call, repository: Repository, tmp_path: Path
) -> None:
    (tmp_path / "outside").write_text("xyzzy\n", encoding="utf-8")
    (repository.folder / "link").symlink_to("old")
    repository.commit("first")
    (repository.folder / "link").unlink()
    (repository.folder / "link").symlink_to(tmp_path / "outside")
    text = shown(call("vcs_diff", path="link"))
    assert "M link +1 -1 (link)" in text
    assert "xyzzy" not in text


def test_of_an_enormous_diff_the_stat_is_whole_and_what_was_not_taken_is_said(
    call: Call, repository: Repository
) -> None:
    huge = b"a line of some length, again and again\n" * 500_000
    repository.commit("first", **{"a": "", "m": "", ".env": "", "z": "1\n"})
    repository.write("a", "1\n")
    repository.write("m", huge)
    repository.write(".env", "KEY=xyzzy\n")
    repository.write("z", "2\n")
    envelope = call("vcs_diff", max_tokens=1000)
    text = shown(envelope)
    assert "4 files, +500,003 -1\n" in text
    assert "M m +500000\n" in text
    assert "M z +1 -1\n" in text
    assert "Only the first 16 MiB of hunks were taken; give a path for others." in text
    assert "xyzzy" not in text
    assert envelope["data"]["total"] == 2


def test_when_git_does_not_look_for_every_rename_that_is_said(
    call: Call, repository: Repository
) -> None:
    repository.git("config", "diff.renameLimit", "2")
    for number in range(4):
        repository.write(f"old-{number}", f"{number}\n{LINES}")
    repository.commit("first")
    for number in range(4):
        repository.git("mv", f"old-{number}", f"new-{number}")
        repository.write(f"new-{number}", f"{number}\n{LINES}more\n")
    repository.git("add", "--all")
    text = shown(call("vcs_diff", staged=True, stat_only=True))
    assert "too many files for git to look for every rename" in text
