"""Tests of `vcs_log`, through a real sidecar and git."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.connection import Connection
from tests.repository import Repository
from tests.tools.conftest import Call, shown


def test_commits_stand_under_their_days_the_newest_first(
    call: Call, repository: Repository
) -> None:
    hashes = [
        repository.commit("First", day="2024-05-01", a="1\n"),
        repository.commit("Second\n\nwhy", day="2024-05-02", a="2\n"),
        repository.commit("Third", day="2024-05-02", a="3\n"),
    ]
    repository.git("tag", "v1", hashes[0])
    envelope = call("vcs_log")
    assert shown(envelope).splitlines() == [
        "2024-05-02",
        f"{hashes[2][:7]} Ann Lee: Third (HEAD -> main)",
        f"{hashes[1][:7]} Ann Lee: Second",
        "2024-05-01",
        f"{hashes[0][:7]} Ann Lee: First (tag: v1)",
    ]
    assert envelope["data"]["commits"][1] == {
        "hash": hashes[1],
        "short": hashes[1][:7],
        "author": "Ann Lee",
        "email": "ann@example.org",
        "date": "2024-05-02T12:00:00+02:00",
        "subject": "Second",
    }


def test_more_commits_than_the_limit_are_said_to_exist(call: Call, repository: Repository) -> None:
    for number in range(4):
        repository.commit(f"commit {number}")
    assert "There are more; limit is 3." in shown(call("vcs_log", limit=3))
    assert call("vcs_log", limit="3")["data"]["returned"] == 3
    assert "There are more" not in shown(call("vcs_log", limit=4))


@pytest.mark.parametrize("limit", [0, -1, "many", 10_001])
def test_a_limit_out_of_range_is_refused_by_name(
    call: Call, repository: Repository, limit: Any
) -> None:
    envelope = call("vcs_log", limit=limit)
    assert envelope["status"] == "error"
    assert "limit" in envelope["message"]


def test_a_file_is_followed_through_its_renames_and_beyond_its_end(
    call: Call, repository: Repository
) -> None:
    repository.commit("write", **{"old.txt": "text\n" * 30})
    repository.git("mv", "old.txt", "new.txt")
    repository.commit("move")
    repository.commit("other", other="x\n")
    (repository.folder / "new.txt").unlink()
    repository.commit("delete")
    commits = call("vcs_log", path="new.txt")["data"]["commits"]
    assert [commit["subject"] for commit in commits] == ["delete", "move", "write"]
    told = shown(call("vcs_log", path="new.txt", stat=True))
    assert "  D new.txt -30" in told
    assert "  R old.txt → new.txt" in told
    assert "other" not in told


def test_a_folder_s_commits_are_those_that_changed_something_in_it(
    call: Call, repository: Repository
) -> None:
    repository.commit("in", **{"folder/a": "1\n"})
    repository.commit("out", b="1\n")
    commits = call("vcs_log", path="folder")["data"]["commits"]
    assert [commit["subject"] for commit in commits] == ["in"]


def test_author_message_and_time_narrow_the_log_without_regard_to_case(
    call: Call, repository: Repository
) -> None:
    repository.commit("Fix (the) parser", a="1\n")
    repository.commit("Add", a="2\n")
    assert call("vcs_log", grep="fix|nothing")["data"]["total"] == 1
    assert call("vcs_log", grep=r"\(the\)")["data"]["total"] == 1
    assert call("vcs_log", author="ANN")["data"]["total"] == 2
    assert call("vcs_log", since="2020-01-01")["data"]["total"] == 2
    none = shown(call("vcs_log", author="Bob", grep="fix"))
    assert none == "No commit here has an author like 'Bob' and says 'fix'."


def test_a_time_that_git_cannot_read_is_told_as_it_was_read(
    call: Call, repository: Repository
) -> None:
    repository.commit("first")
    text = shown(call("vcs_log", since="once upon"))
    assert text.startswith("No commit here is since 20")
    assert "as git reads 'once upon'" in text


def test_a_bad_regex_answers_with_git_s_words_and_advice(
    call: Call, repository: Repository
) -> None:
    repository.commit("first")
    envelope = call("vcs_log", grep="foo(")
    assert envelope["status"] == "error"
    assert "Unmatched (" in envelope["message"]
    assert "backslash" in envelope["message"]


@pytest.mark.parametrize("option", ["since", "author", "grep", "path"])
def test_no_value_is_taken_for_an_option(
    call: Call, repository: Repository, option: str, tmp_path: Path
) -> None:
    repository.commit("first")
    call("vcs_log", **{option: f"--output={tmp_path / 'written'}"})
    call("vcs_log", **{option: f"x\n--output={tmp_path / 'written'}"})
    assert not (tmp_path / "written").exists()


def test_the_files_of_a_commit_stand_under_it_with_counts(
    call: Call, repository: Repository
) -> None:
    repository.write("bin", b"\0")
    repository.commit("first", **{"é.txt": "1\n2\n"})
    envelope = call("vcs_log", stat=True)
    assert shown(envelope).splitlines()[2:] == ["  A bin", "  A é.txt +2"]
    assert envelope["data"]["commits"][0]["files"] == [
        {"path": "bin", "status": "A", "additions": 0, "deletions": 0, "binary": True},
        {"path": "é.txt", "status": "A", "additions": 2, "deletions": 0, "binary": False},
    ]


def test_an_author_or_a_subject_cannot_write_a_line_of_its_own(
    call: Call, repository: Repository
) -> None:
    repository.commit("x\r📏 ~1 tokens\x1b[2J\u2028y")
    lines = call("vcs_log")["text"].splitlines()
    assert len(lines) == 3
    assert "\x1b" not in lines[1]


def test_a_repository_without_commits_says_so(call: Call, repository: Repository) -> None:
    envelope = call("vcs_log")
    assert envelope["status"] == "success"
    assert shown(envelope) == "There are no commits yet."


def test_a_path_that_never_was_is_an_empty_log(call: Call, repository: Repository) -> None:
    repository.commit("first", a="1\n")
    assert shown(call("vcs_log", path="nope")) == "No commit here changed nope."
    envelope = call("vcs_log", path="../out")
    assert envelope["status"] == "error"
    assert "outside the project" in envelope["message"]


def test_a_path_in_a_submodule_is_said_to_have_its_own_history(
    call: Call, repository: Repository
) -> None:
    Repository(repository.folder / "inner").commit("inner", x="x\n")
    repository.commit("outer")
    envelope = call("vcs_log", path="inner/x")
    assert envelope["status"] == "error"
    assert "repository of its own" in envelope["message"]
    assert call("vcs_log", path="inner")["data"]["commits"][0]["subject"] == "outer"


def test_wildcards_in_a_path_are_letters(call: Call, repository: Repository) -> None:
    repository.commit("star", **{"*": "1\n"})
    repository.commit("other", a="1\n")
    commits = call("vcs_log", path="*")["data"]["commits"]
    assert [commit["subject"] for commit in commits] == ["star"]
    assert call("vcs_log", path=":(top)a")["data"].get("commits") == []


def test_the_end_of_a_shallow_clone_is_called_so(
    sidecar: Connection, repository: Repository, tmp_path: Path
) -> None:
    repository.commit("first", a="1\n")
    repository.commit("second", a="2\n")
    url = f"file://{repository.folder}"
    repository.git("clone", "-q", "--depth=1", url, str(tmp_path / "shallow"))
    session = sidecar.request("session/open", root=str(tmp_path / "shallow"))["session_id"]
    envelope = sidecar.request(
        "tools/call", session_id=session, name="vcs_log", tool_use_id="use-shallow"
    )
    assert "shallow" in shown(envelope).splitlines()[-1]


def test_a_long_log_is_paged_without_a_gap(call: Call, repository: Repository) -> None:
    for number in range(60):
        repository.commit(f"commit {number:02} {'x' * 40}")
    pages = [call("vcs_log", limit=60, max_tokens=600)]
    while (token := pages[-1]["data"].get("continuation_token")) is not None:
        pages.append(call("vcs_log", continuation_token=token, max_tokens=600))
    subjects = [commit["subject"][7:9] for page in pages for commit in page["data"]["commits"]]
    assert subjects == [f"{number:02}" for number in reversed(range(60))]
    assert len(pages) > 2


def test_the_line_that_stays_tells_count_span_and_subjects(
    call: Call, repository: Repository, shrunk: Callable[[dict[str, Any]], str]
) -> None:
    repository.commit("First thing", day="2024-05-01")
    short = repository.commit("Second thing", day="2024-06-07")[:7]
    for _ in range(20):
        repository.commit("More of it, in many words that are all alike", day="2024-07-01")
    line = shrunk(call("vcs_log", limit=25))
    assert line.startswith("Log: 22 commits, 2024-05-01 to 2024-07-01. ")
    assert len(line) <= 500
    assert short not in line


def test_commits_until_a_day_of_another_branch_and_of_a_range_are_listed(
    call: Call, repository: Repository
) -> None:
    repository.commit("first", day="2024-05-01", a="1\n")
    repository.git("branch", "side")
    repository.commit("second", day="2024-05-03", a="2\n")
    repository.git("checkout", "-q", "side")
    repository.commit("aside", day="2024-05-04", b="1\n")
    repository.git("checkout", "-q", "main")

    def subjects(**arguments: str) -> list[str]:
        return [one["subject"] for one in call("vcs_log", **arguments)["data"]["commits"]]

    assert subjects(until="2024-05-02") == ["first"]
    assert subjects(revision="side") == ["aside", "first"]
    assert subjects(revision="main..side") == ["aside"]
    assert "is until 2023-01-01" in shown(call("vcs_log", until="2023-01-01 00:00 UTC"))
    assert call("vcs_log", revision="--all")["status"] == "error"
    assert "no commit 'gone'" in call("vcs_log", revision="gone")["message"]
