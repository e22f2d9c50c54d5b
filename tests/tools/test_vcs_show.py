"""Tests of `vcs_show`, through a real sidecar and git."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.repository import Repository
from tests.tools.conftest import Call, shown


def test_a_commit_is_told_by_author_time_message_and_what_it_changed(
    call: Call, repository: Repository
) -> None:
    repository.commit("first", a="1\n")
    commit = repository.commit("Second\n\nBecause of this.\n\nAnd that.", a="2\n", b="b\n")
    envelope = call("vcs_show", revision="main")
    assert shown(envelope).splitlines() == [
        f"commit {commit} (HEAD -> main)",
        "Ann Lee <ann@example.org>, 2024-05-01T12:00:00+02:00",
        "",
        "Second",
        "",
        "Because of this.",
        "",
        "And that.",
        "",
        "2 files, +2 -1",
        "M a +1 -1",
        "A b +1",
        "",
        "M a",
        "@@ -1 +1 @@",
        "-1",
        "+2",
        "A b",
        "@@ -0,0 +1 @@",
        "+b",
    ]
    data = envelope["data"]
    assert (data["hash"], data["subject"]) == (commit, "Second")
    assert data["message"] == "Second\n\nBecause of this.\n\nAnd that."
    assert [file["path"] for file in data["files"]] == ["a", "b"]


def test_tags_hashes_and_the_first_commit_can_be_shown(call: Call, repository: Repository) -> None:
    commit = repository.commit("first", a="1\n")
    repository.git("tag", "-a", "-m", "tagged", "v1")
    for revision in ("v1", commit[:8], "HEAD~0", "main@{0}"):
        envelope = call("vcs_show", revision=revision)
        assert envelope["data"]["hash"] == commit
    assert envelope["data"]["files"][0]["status"] == "A"


def test_a_path_narrows_the_changes_even_of_a_file_that_is_gone(
    call: Call, repository: Repository
) -> None:
    repository.commit("first", gone="1\n", b="b\n")
    (repository.folder / "gone").unlink()
    repository.commit("second")
    files = call("vcs_show", revision="HEAD~1", path="gone")["data"]["files"]
    assert [file["path"] for file in files] == ["gone"]
    assert "It does not change b." in shown(call("vcs_show", revision="HEAD", path="b"))


def test_a_merge_shows_what_differs_from_every_parent_and_where_the_rest_is(
    call: Call, repository: Repository
) -> None:
    repository.commit("first", a="1\n")
    repository.git("checkout", "-q", "-b", "side")
    repository.commit("side", a="side\n", s="s\n")
    repository.git("checkout", "-q", "main")
    repository.commit("main", a="main\n")
    repository.git("merge", "-q", "side", fails=True)
    commit = repository.commit("merged", a="both\n")[:7]
    envelope = call("vcs_show", revision="HEAD")
    text = shown(envelope)
    assert "M a +1 -2" in text
    assert "- main\n -side\n++both" in text
    assert f"vcs_diff {commit}^..{commit}" in text
    assert len(envelope["data"]["parents"]) == 2
    brought = call("vcs_diff", revision=f"{commit}^..{commit}")["data"]["files"]
    assert [file["path"] for file in brought] == ["a", "s"]


def test_an_empty_commit_says_that_it_changes_nothing(call: Call, repository: Repository) -> None:
    repository.commit("nothing")
    envelope = call("vcs_show", revision="HEAD")
    assert shown(envelope).endswith("nothing\n\nNo changes.")
    assert envelope["data"]["files"] == []


def test_another_committer_is_named(call: Call, repository: Repository) -> None:
    repository.commit("first")
    repository.git("commit", "-q", "--amend", "--allow-empty", "--author=Bob <b@x>", "-m", "x")
    lines = shown(call("vcs_show", revision="HEAD")).splitlines()
    assert lines[1].startswith("Bob <b@x>, ")
    assert lines[2].startswith("committed by Ann Lee <ann@example.org>, ")


def test_a_file_can_be_shown_as_it_was(call: Call, repository: Repository) -> None:
    repository.commit("first", **{"src/größe.txt": "1\r\n2\r\n"})
    (repository.folder / "src" / "größe.txt").unlink()
    repository.commit("second", other="x\n")
    commit = repository.git("rev-parse", "HEAD~1")
    envelope = call("vcs_show", revision="HEAD~1:src/größe.txt")
    assert shown(envelope).splitlines() == [
        "1",
        "2",
        f"src/größe.txt at {commit[:10]}, 6 bytes, CRLF.",
    ]
    missing = call("vcs_show", revision="HEAD:src/größe.txt")
    assert missing["status"] == "error"
    assert "vcs_log" in missing["message"]


def test_a_folder_as_it_was_is_a_list(call: Call, repository: Repository) -> None:
    inner = Repository(repository.folder / "inner")
    commit = inner.commit("inner")
    (repository.folder / "link").symlink_to("a")
    repository.commit("first", **{"a": "1\n", "folder/b": "22\n"})
    assert shown(call("vcs_show", revision="HEAD:")).splitlines() == [
        "./ at HEAD:",
        "a 2 bytes",
        "folder/",
        f"inner (submodule at {commit[:10]})",
        "link (link)",
    ]
    assert shown(call("vcs_show", revision="HEAD:folder")).splitlines()[1:] == ["b 3 bytes"]
    assert "a link to 'a'" in shown(call("vcs_show", revision="HEAD:link"))
    assert commit in shown(call("vcs_show", revision="HEAD:inner"))


def test_binary_files_and_pointers_are_told_as_what_they_are(
    call: Call, repository: Repository
) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:aa\nsize 1\n"
    repository.commit("first", bin=b"\0" * 2000, large=pointer, empty="", latin=b"\xe9\n")
    assert "binary, 2,000 bytes" in shown(call("vcs_show", revision="HEAD:bin"))
    assert "pointer to a large file" in shown(call("vcs_show", revision="HEAD:large"))
    assert shown(call("vcs_show", revision="HEAD:empty")).endswith("empty.")
    assert shown(call("vcs_show", revision="HEAD:latin")).startswith("\ufffd\n")


def test_secret_files_are_left_out_of_a_commit_and_asked_about_by_name(
    call: Call, repository: Repository
) -> None:
    repository.commit("first", **{".env": "KEY=xyzzy\n", "a": "1\n"})
    envelope = call("vcs_show", revision="HEAD")
    assert "xyzzy" not in envelope["text"]
    assert "A .env +1 (secret: hunks left out)" in envelope["text"]
    for arguments in ({"revision": "HEAD", "path": ".env"}, {"revision": "HEAD:.env"}):
        use = f"use-{len(arguments)}"
        asked = call("vcs_show", use=use, **arguments)
        assert asked["status"] == "needs_confirmation"
        agreed = call("vcs_show", use=use, confirm_id=asked["confirm"]["id"], **arguments)
        assert "KEY=xyzzy" in agreed["text"]


@pytest.mark.parametrize(
    "revision",
    ["--output=written", "-p", "nope", "HEAD^{tree}", ":a", "HEAD:../x", "nope:a", "HEAD:/etc", ""],
)
def test_what_cannot_be_shown_is_refused_with_advice(
    call: Call, repository: Repository, revision: str
) -> None:
    repository.commit("first", a="1\n")
    envelope = call("vcs_show", revision=revision)
    assert envelope["status"] == "error"
    assert "Traceback" not in envelope["message"]
    assert not (repository.folder / "written").exists()


def test_a_content_cannot_be_reached_by_its_own_hash(call: Call, repository: Repository) -> None:
    repository.commit("first", **{".env": "KEY=xyzzy\n"})
    blob = repository.git("rev-parse", "HEAD:.env")
    envelope = call("vcs_show", revision=blob)
    assert envelope["status"] == "error"
    assert "xyzzy" not in envelope["text"]


def test_a_repository_without_commits_says_so(call: Call, repository: Repository) -> None:
    assert "no commits yet" in call("vcs_show", revision="HEAD")["message"]


def test_a_file_with_an_odd_name_can_be_shown_as_it_was(call: Call, repository: Repository) -> None:
    for name in (b"new\nline", b"latin\xe9", b'"quoted"', b"a:b", b"*"):
        repository.write(os.fsdecode(name), name)
    repository.commit("first")
    for shown_name in (r'"new\nline"', r'"latin\351"', r'"\"quoted\""', "a:b", "*"):
        envelope = call("vcs_show", revision=f"HEAD:{shown_name}")
        assert envelope["data"]["path"] == shown_name


def test_a_message_cannot_command_a_terminal(call: Call, repository: Repository) -> None:
    repository.commit("x\x1b[2J\u2028y\n\nbody\x07")
    text = call("vcs_show", revision="HEAD")["text"]
    assert not set(text) & {"\x1b", "\u2028", "\x07"}


def test_a_long_commit_is_paged_hunk_by_hunk(
    call: Call, repository: Repository, tmp_path: Path
) -> None:
    lines = "".join(f"{number}\n" for number in range(2000))
    repository.commit("first", a=lines)
    repository.commit("second", a=lines.replace("5\n", "5!\n"))
    pages = [call("vcs_show", revision="HEAD", max_tokens=1500)]
    for _ in range(40):
        token = pages[-1]["data"].get("continuation_token")
        if token is None:
            break
        pages.append(call("vcs_show", continuation_token=token, max_tokens=1500))
        assert pages[-1]["text"].startswith("M a (continued)\n@@")
    assert sum(page["data"]["returned"] for page in pages) == pages[0]["data"]["total"]


def test_the_line_that_stays_tells_the_commit_and_its_files(
    call: Call, repository: Repository, shrunk: Callable[[dict[str, Any]], str]
) -> None:
    repository.commit("Write much", a="1\n" * 50, b="2\n" * 50)
    short = repository.git("rev-parse", "--short", "HEAD")
    line = shrunk(call("vcs_show", revision="HEAD"))
    assert line == f"Commit {short} by Ann Lee: Write much: 2 files, +100/-0. Added: a, b."
    assert shrunk(call("vcs_show", revision="HEAD:a")) == "Showed HEAD:a: 50 lines"
