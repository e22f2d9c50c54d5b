"""Tests of `vcs_blame`, through a real sidecar and git."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.connection import Connection
from tests.repository import Repository
from tests.tools.conftest import Call, shown


@pytest.fixture
def written(repository: Repository) -> Repository:
    """A file of five lines from two commits."""
    repository.commit("first", day="2024-05-01", **{"a.txt": "one\ntwo\nthree\nfour\nfive\n"})
    repository.commit("second", day="2024-06-01", **{"a.txt": "one\ntwo\nTHREE\nfour\nfive\n"})
    return repository


def test_lines_stand_under_the_commit_they_come_from_each_run_once(
    call: Call, written: Repository
) -> None:
    second, first = written.git("log", "--format=%H").splitlines()
    envelope = call("vcs_blame", path="a.txt")
    assert shown(envelope).splitlines() == [
        f"{first[:8]} 2024-05-01 Ann Lee",
        "1\tone",
        "2\ttwo",
        f"{second[:8]} 2024-06-01 Ann Lee",
        "3\tTHREE",
        f"{first[:8]} 2024-05-01 Ann Lee",
        "4\tfour",
        "5\tfive",
    ]
    assert envelope["data"]["runs"][1] == {
        "start": 3,
        "end": 3,
        "hash": second,
        "author": "Ann Lee",
        "date": "2024-06-01",
        "subject": "second",
        "path": "a.txt",
    }
    assert envelope["data"]["total"] == 5


def test_a_range_of_lines_is_what_is_shown(call: Call, written: Repository) -> None:
    lines = shown(call("vcs_blame", path="a.txt", start_line="2", end_line=3)).splitlines()
    assert [lines[1], lines[3]] == ["2\ttwo", "3\tTHREE"]
    assert "5\tfive" in shown(call("vcs_blame", path="a.txt", start_line=5))
    assert "The file ends at line 5." in shown(call("vcs_blame", path="a.txt", end_line=9))


@pytest.mark.parametrize("lines", [{"start_line": 6}, {"start_line": 4, "end_line": 2}])
def test_a_range_that_the_file_does_not_have_is_refused_with_its_length(
    call: Call, written: Repository, lines: dict[str, int]
) -> None:
    for revision in ({}, {"revision": "HEAD~1"}):
        envelope = call("vcs_blame", path="a.txt", **lines, **revision)
        assert envelope["status"] == "error"
        assert "a.txt has 5 lines" in envelope["message"]


@pytest.mark.parametrize(
    "lines", [{"start_line": 0}, {"end_line": -1}, {"start_line": "x"}, {"end_line": 2**40}]
)
def test_a_line_out_of_range_is_refused_by_name(
    call: Call, written: Repository, lines: dict[str, Any]
) -> None:
    envelope = call("vcs_blame", path="a.txt", **lines)
    assert envelope["status"] == "error"
    assert next(iter(lines)) in envelope["message"]


def test_lines_that_are_not_committed_are_called_so(call: Call, written: Repository) -> None:
    written.write("a.txt", "zero\none\n")
    lines = shown(call("vcs_blame", path="a.txt")).splitlines()
    assert lines[:2] == ["not committed", "1\tzero"]


def test_a_file_can_be_looked_at_as_of_then_even_when_it_is_gone(
    call: Call, written: Repository
) -> None:
    assert "3\tthree" in shown(call("vcs_blame", path="a.txt", revision="HEAD~1"))
    (written.folder / "a.txt").unlink()
    gone = call("vcs_blame", path="a.txt")
    assert gone["status"] == "error"
    assert "revision: HEAD" in gone["message"]
    assert "3\tTHREE" in shown(call("vcs_blame", path="a.txt", revision="HEAD"))
    written.commit("deleted")
    gone = call("vcs_blame", path="a.txt")
    assert "vcs_log" in gone["message"]
    assert call("vcs_blame", path="a.txt", revision="HEAD~1")["data"]["runs"][1]["start"] == 3


def test_lines_from_a_file_of_another_name_say_which(call: Call, written: Repository) -> None:
    written.git("mv", "a.txt", "b.txt")
    written.commit("moved")
    assert "Ann Lee (in a.txt)" in shown(call("vcs_blame", path="b.txt"))


@pytest.mark.parametrize("path", ["nope", ".", "new", "../x", "/etc/passwd", "--output=x"])
def test_what_has_no_lines_in_git_is_refused_with_advice(
    call: Call, written: Repository, path: str
) -> None:
    written.write("new", "x\n")
    envelope = call("vcs_blame", path=path)
    assert envelope["status"] == "error"
    assert "Traceback" not in envelope["message"]
    assert "usage" not in envelope["message"]


@pytest.mark.parametrize("revision", ["-s", "--contents=/etc/passwd", "nope", "HEAD:a.txt", "a b"])
def test_what_is_no_commit_is_refused(call: Call, written: Repository, revision: str) -> None:
    envelope = call("vcs_blame", path="a.txt", revision=revision)
    assert envelope["status"] == "error"
    assert "vcs_log" in envelope["message"]


def test_a_secret_file_is_shown_when_the_person_agrees(call: Call, repository: Repository) -> None:
    repository.commit("first", **{".env": "KEY=xyzzy\n"})
    asked = call("vcs_blame", use="secret", path=".env")
    assert asked["status"] == "needs_confirmation"
    agreed = call("vcs_blame", use="secret", confirm_id=asked["confirm"]["id"], path=".env")
    assert "1\tKEY=xyzzy" in agreed["text"]


def test_an_empty_file_and_one_of_crlf_and_one_of_other_bytes_are_shown_as_such(
    call: Call, repository: Repository
) -> None:
    repository.commit("first", empty="", dos=b"1\r\n2\r\n", latin=b"x\xe9\n", tab=b"\tx\n\n\ty")
    assert shown(call("vcs_blame", path="empty")) == "empty is empty."
    assert shown(call("vcs_blame", path="dos")).splitlines()[1:] == ["1\t1", "2\t2", "CRLF"]
    assert "1\tx\ufffd" in shown(call("vcs_blame", path="latin"))
    assert shown(call("vcs_blame", path="tab")).splitlines()[1:] == ["1\t\tx", "2\t", "3\t\ty"]


def test_every_name_can_be_given_as_it_is_shown(call: Call, repository: Repository) -> None:
    for name in (b"new\nline", b"latin\xe9", b'"quoted"', b"-L1,2"):
        repository.write(os.fsdecode(name), "x\n")
    repository.commit("first")
    for given in (r'"new\nline"', r'"latin\351"', r'"\"quoted\""', "-L1,2"):
        envelope = call("vcs_blame", path=given)
        assert envelope["data"]["path"] == given
        assert envelope["data"]["runs"][0]["path"] == given


def test_lines_from_the_outer_part_of_a_repository_are_named_from_the_project_on(
    sidecar: Connection, repository: Repository
) -> None:
    repository.commit("first", **{"inner/a.txt": "1\n"})
    session = sidecar.request("session/open", root=str(repository.folder / "inner"))["session_id"]
    envelope = sidecar.call_tool(session, "vcs_blame", "use-inner", {"path": "a.txt"})
    assert shown(envelope).endswith(" Ann Lee\n1\t1")


def test_a_buffer_that_is_not_saved_is_said_to_differ(
    call: Call, written: Repository, sidecar: Connection, session: str
) -> None:
    sidecar.notify("buffers/sync", session_id=session, path="a.txt", text="zero\n")
    assert "not saved" in shown(call("vcs_blame", path="a.txt"))
    assert "not saved" not in shown(call("vcs_blame", path="a.txt", revision="HEAD"))


def test_a_page_that_begins_inside_a_run_repeats_its_commit(
    call: Call, repository: Repository
) -> None:
    text = "".join(f"line {number}\n" for number in range(1, 501))
    commit = repository.commit("first", a=text)[:8]
    first = call("vcs_blame", path="a", max_tokens=600)
    token = first["data"]["continuation_token"]
    second = call("vcs_blame", continuation_token=token, max_tokens=600)
    returned = first["data"]["returned"]
    assert second["text"].splitlines()[:2] == [
        f"{commit} 2024-05-01 Ann Lee (continued)",
        f"{returned + 1}\tline {returned + 1}",
    ]


def test_the_line_that_stays_tells_lines_and_authors(
    call: Call, repository: Repository, shrunk: Callable[[dict[str, Any]], str], tmp_path: Path
) -> None:
    repository.commit("first", a="".join(f"line {number}\n" for number in range(1, 101)))
    line = shrunk(call("vcs_blame", path="a"))
    assert line == "Blamed a, lines 1-100: 1 commit. Ann Lee (100)"
