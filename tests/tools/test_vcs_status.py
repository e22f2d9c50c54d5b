"""Tests of `vcs_status`, through a real sidecar and git."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.repository import Repository
from tests.tools.conftest import Call, shown


def test_files_stand_under_what_they_are_each_state_once(
    call: Call, repository: Repository
) -> None:
    repository.commit("first", **{"src/a.py": "a\n", "b.py": "b\n", "c.py": "c\n" * 20})
    repository.git("mv", "c.py", "d.py")
    repository.write("b.py", "B\n")
    repository.git("add", "b.py")
    repository.write("b.py", "BB\n")
    (repository.folder / "src" / "a.py").unlink()
    repository.write("new/x", "")
    envelope = call("vcs_status")
    assert envelope["status"] == "success"
    assert shown(envelope).splitlines() == [
        "On main",
        "Staged:",
        "M b.py",
        "R c.py → d.py",
        "Not staged:",
        "M b.py",
        "D src/a.py",
        "Untracked:",
        "new/",
    ]
    data = envelope["data"]
    assert data["counts"] == {"staged": 2, "not staged": 2, "untracked": 1}
    assert {"path": "d.py", "state": "staged", "status": "R", "old_path": "c.py"} in data["files"]
    assert (data["branch"], data["commit"]) == ("main", repository.git("rev-parse", "HEAD"))


def test_a_clean_tree_says_that_nothing_has_changed(call: Call, repository: Repository) -> None:
    repository.commit("first", a="a\n")
    assert shown(call("vcs_status")) == "On main\nNothing has changed."
    assert call("vcs_status")["data"]["files"] == []


def test_a_repository_without_commits_says_so(call: Call, repository: Repository) -> None:
    repository.write("a", "a\n")
    repository.git("add", "a")
    envelope = call("vcs_status")
    assert shown(envelope).splitlines() == ["On main, no commits yet", "Staged:", "A a"]
    assert envelope["data"]["commit"] is None


def test_a_detached_head_is_told_by_its_commit(call: Call, repository: Repository) -> None:
    commit = repository.commit("first", a="a\n")
    repository.git("checkout", "-q", "--detach")
    assert shown(call("vcs_status")).startswith(f"Detached at {commit[:10]}\n")


def test_conflicts_are_told_in_words_with_what_is_under_way(
    call: Call, repository: Repository
) -> None:
    repository.commit("first", both="1\n", ours="1\n", theirs="1\n")
    repository.git("checkout", "-q", "-b", "side")
    (repository.folder / "ours").unlink()
    repository.commit("side", both="side\n", theirs="side\n", added="side\n")
    repository.git("checkout", "-q", "main")
    (repository.folder / "theirs").unlink()
    repository.commit("main", both="main\n", ours="main\n", added="main\n")
    repository.git("merge", "-q", "side", fails=True)
    assert shown(call("vcs_status")).splitlines() == [
        "On main; merging is under way",
        "Conflicts:",
        "both added: added",
        "both modified: both",
        "deleted by them: ours",
        "deleted by us: theirs",
    ]


def test_the_upstream_is_told_with_the_distance_either_way(
    call: Call, repository: Repository, tmp_path: Path
) -> None:
    repository.commit("first", a="a\n")
    repository.git("clone", "-q", "--bare", ".", str(tmp_path / "remote"))
    repository.git("remote", "add", "origin", str(tmp_path / "remote"))
    repository.git("fetch", "-q")
    repository.git("branch", "-q", "-u", "origin/main")
    assert shown(call("vcs_status")).startswith("On main; level with origin/main\n")
    repository.commit("second", a="b\n")
    assert shown(call("vcs_status")).startswith("On main; 1 ahead of origin/main, 0 behind\n")
    repository.git("update-ref", "-d", "refs/remotes/origin/main")
    assert shown(call("vcs_status")).startswith("On main; its upstream origin/main is gone\n")


def test_what_is_stashed_is_counted(call: Call, repository: Repository) -> None:
    repository.commit("first", a="a\n")
    repository.write("a", "b\n")
    repository.git("stash", "-q")
    assert shown(call("vcs_status")).startswith("On main; 1 stashed\n")


def test_a_submodule_is_told_when_it_stands_at_another_commit_not_for_changes_in_it(
    call: Call, repository: Repository
) -> None:
    inner = Repository(repository.folder / "inner")
    inner.commit("inner", x="x\n")
    repository.commit("outer")
    inner.write("x", "dirty\n")
    assert shown(call("vcs_status")) == "On main\nNothing has changed."
    inner.commit("inner again")
    assert shown(call("vcs_status")).splitlines()[1:] == ["Not staged:", "M inner (submodule)"]


def test_linked_working_trees_and_shallow_clones_are_called_so(
    sidecar: Any, repository: Repository, tmp_path: Path
) -> None:
    repository.commit("first", a="a\n")
    repository.commit("second", a="b\n")
    repository.git("worktree", "add", "-q", str(tmp_path / "linked"), "-b", "side")
    url = f"file://{repository.folder}"
    repository.git("clone", "-q", "--depth=1", url, str(tmp_path / "shallow"))
    heads = []
    for number, name in enumerate(("linked", "shallow")):
        session = sidecar.request("session/open", root=str(tmp_path / name))["session_id"]
        envelope = sidecar.request(
            "tools/call", session_id=session, name="vcs_status", tool_use_id=f"use-{number}"
        )
        heads.append(shown(envelope).splitlines()[0])
    assert heads == [
        "On side; linked working tree",
        "On main; level with origin/main; shallow clone",
    ]


def test_every_name_is_shown_in_the_form_in_which_it_can_be_given_back(
    call: Call, repository: Repository
) -> None:
    names = [b"new\nline", b"latin\xe9", "größe".encode(), b'"quoted"', b"a b", b"->", b"tab\t"]
    for name in names:
        (repository.folder / os.fsdecode(name)).write_bytes(b"")
    told = shown(call("vcs_status")).splitlines()[2:]
    wanted = [r'"\"quoted\""', "->", "a b", "größe", r'"latin\351"', r'"new\nline"', r'"tab\t"']
    assert sorted(told) == sorted(wanted)


def test_a_file_whose_filter_was_not_run_is_marked(call: Call, repository: Repository) -> None:
    repository.git("config", "filter.lfs.clean", "tr a-z A-Z")
    repository.commit("first", **{".gitattributes": "*.bin filter=lfs\n", "x.bin": "abc\n"})
    repository.git("config", "core.trustctime", "false")
    os.utime(repository.folder / "x.bin", (1, 1))
    assert "M x.bin (its filter was not run)" in shown(call("vcs_status"))


def test_thousands_of_files_are_paged_under_their_header(
    call: Call, repository: Repository
) -> None:
    for number in range(3000):
        repository.write(f"file-{number:04}", "")
    first = call("vcs_status", max_tokens=500)
    assert first["data"]["total"] == 3000
    second = call("vcs_status", continuation_token=first["data"]["continuation_token"])
    assert second["text"].startswith("§ Untracked: (continued)\n")
    paths = [file["path"] for page in (first, second) for file in page["data"]["files"]]
    assert paths == [f"file-{number:04}" for number in range(len(paths))]


def test_arguments_it_does_not_take_are_refused(call: Call, repository: Repository) -> None:
    envelope = call("vcs_status", path="a")
    assert envelope["status"] == "error"
    assert "path" in envelope["message"]


def test_the_line_that_stays_tells_branch_counts_and_names(
    call: Call, repository: Repository, shrunk: Callable[[dict[str, Any]], str]
) -> None:
    repository.commit("first", a="a\n", b="b\n")
    repository.write("a", "A\n")
    for number in range(80):
        repository.write(f"file-{number:02}", "")
    line = shrunk(call("vcs_status"))
    assert line.startswith("Status: On main. 1 not staged, 80 untracked: a, file-00, file-01")
    assert len(line) <= 500


@pytest.mark.parametrize("given", [{"max_tokens": 0}, {"max_tokens": -1}, {"max_tokens": "x"}])
def test_an_allowance_out_of_range_is_refused_with_the_range(
    call: Call, repository: Repository, given: dict[str, Any]
) -> None:
    envelope = call("vcs_status", **given)
    assert envelope["status"] == "error"
    assert "50 to 1,000,000" in envelope["message"]
