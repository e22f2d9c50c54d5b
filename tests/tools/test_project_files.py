"""Tests of `project_files`, through a real sidecar, with real git, rg and files."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.connection import Connection
from tests.marks import unmarked
from tests.tools.conftest import Call

List = Callable[..., dict[str, Any]]


@pytest.fixture
def listing(call: Call) -> List:
    """Call the tool with these arguments."""
    return partial(call, "project_files")


def _touch(project: Path, *names: str) -> None:
    for name in names:
        file = project / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x\n")


def _git(project: Path, *arguments: str) -> None:
    name = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", *name, *arguments], cwd=project, check=True, capture_output=True)


def _repository(project: Path, *names: str) -> None:
    """Make a repository that tracks these files."""
    _touch(project, *names)
    _git(project, "init", "-q")
    _git(project, "add", "--force", "--", *names)


def _lines(envelope: dict[str, Any]) -> list[str]:
    lines = unmarked(envelope["text"]).splitlines()
    assert lines[-1].startswith("📏 ~")
    return lines[:-1]


def test_each_folder_is_told_once_with_its_files_below_and_totals_by_ending(
    listing: List, project: Path
) -> None:
    _touch(project, "README.md", "src/b.py", "src/a.py", "src/deep/größe.el", "Makefile")
    envelope = listing()
    assert _lines(envelope) == [
        *("Makefile", "README.md", "src/", "a.py", "b.py", "src/deep/", "größe.el"),
        "5 files: .py 2, .el 1, .md 1, no ending 1",
    ]
    assert envelope["data"]["files"] == [
        *("Makefile", "README.md", "src/a.py", "src/b.py", "src/deep/größe.el")
    ]
    assert envelope["data"]["total"] == 5


def test_a_repository_lists_what_is_tracked_and_what_is_new_but_not_what_is_ignored(
    listing: List, project: Path
) -> None:
    _repository(project, ".gitignore", "a.py", "kept.log", "src/gone.py", "src/here.py", ".ci/b")
    _touch(project, "new.py", "b.log", "build/c.o", ".env")
    (project / ".gitignore").write_text("*.log\nbuild/\n")
    (project / "src/gone.py").unlink()
    envelope = listing()
    assert envelope["data"]["files"] == [
        *(".env", ".gitignore", "a.py", "kept.log", "new.py", ".ci/b", "src/here.py")
    ]
    assert "Tracked, but not there: src/gone.py" in _lines(envelope)
    assert listing(kind="untracked")["data"]["files"] == [".env", "new.py"]
    tracked = listing(kind="tracked", include_hidden=False)
    assert tracked["data"]["files"] == ["a.py", "kept.log", "src/here.py"]


def test_what_is_deleted_between_two_listings_is_missing_from_the_second(
    listing: List, project: Path
) -> None:
    _repository(project, "src/a", "src/b")
    os.utime(project / "src", (0, 0))
    assert listing()["data"]["files"] == ["src/a", "src/b"]
    (project / "src/b").unlink()
    assert listing(kind="tracked")["data"]["files"] == ["src/a"]


def test_the_root_below_a_repositorys_top_and_folders_in_it_list_their_own_files(
    sidecar: Connection, project: Path
) -> None:
    _repository(project, "top.py", "sub/a.py", "sub/deep/b.py")
    session = sidecar.request("session/open", root=str(project / "sub"))["session_id"]
    call = {"session_id": session, "name": "project_files"}
    whole = sidecar.request("tools/call", **call, arguments={}, tool_use_id="use-1")
    assert whole["data"]["files"] == ["a.py", "deep/b.py"]
    below = sidecar.request("tools/call", **call, arguments={"path": "deep"}, tool_use_id="use-2")
    assert below["data"]["files"] == ["deep/b.py"]


def test_merge_conflicts_links_and_inner_repositories_are_listed_once(
    listing: List, project: Path
) -> None:
    _repository(project, "a.py", "folder/x")
    _git(project, "commit", "-qm", "one")
    _git(project, "branch", "start")
    for branch, text in (("left", "1\n"), ("right", "2\n")):
        _git(project, "checkout", "-qb", branch, "start")
        (project / "a.py").write_text(text)
        _git(project, "commit", "-qam", branch)
    subprocess.run(["git", "merge", "left"], cwd=project, capture_output=True, check=False)
    (project / "link").symlink_to("/etc")
    _touch(project, "inner/file")
    _repository(project / "inner", "file")
    files = listing()["data"]["files"]
    assert files == ["a.py", "inner/", "link", "folder/x"]


def test_a_tracked_folder_that_is_a_link_now_does_not_lead_out(
    listing: List, project: Path, tmp_path: Path
) -> None:
    _repository(project, "folder/a", "b")
    _touch(tmp_path, "outside/a")
    (project / "folder/a").unlink()
    (project / "folder").rmdir()
    (project / "folder").symlink_to(tmp_path / "outside")
    envelope = listing()
    assert envelope["data"]["files"] == ["b", "folder"]
    assert "Tracked, but not there: folder/a" in _lines(envelope)


def test_no_program_of_the_repositorys_configuration_runs(
    listing: List, project: Path, tmp_path: Path
) -> None:
    _repository(project, "a")
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path / 'ran'}\n")
    program.chmod(0o755)
    _git(project, "config", "core.fsmonitor", str(program))
    _git(project, "config", "filter.f.clean", str(program))
    (project / ".gitattributes").write_text("* filter=f\n")
    _git(project, "config", "core.worktree", str(tmp_path))
    assert listing()["data"]["files"] == [".gitattributes", "a"]
    assert not (tmp_path / "ran").exists()


def test_a_repository_git_does_not_read_is_listed_without_it_and_the_reason_told(
    listing: List, project: Path
) -> None:
    _repository(project, "a", "b.log", ".gitignore")
    (project / ".gitignore").write_text("*.log\n")
    (project / ".git/index").write_bytes(b"broken")
    envelope = listing()
    assert envelope["data"]["files"] == [".gitignore", "a"]
    assert "Listed without git: " in envelope["text"]


def test_without_a_repository_ignore_files_count_and_kinds_of_git_are_refused(
    listing: List, project: Path
) -> None:
    _touch(project, "a", "b.log", "sub/c.log", "sub/d", ".ignore")
    (project / ".gitignore").write_text("*.log\n")
    (project / ".ignore").write_text("d\n")
    assert listing()["data"]["files"] == [".gitignore", ".ignore", "a"]
    assert "git repository" in listing(kind="tracked")["message"]


def test_names_are_exact_in_both_directions(listing: List, project: Path) -> None:
    names = ["new\nline/x", 'quo"te', '"q', "\\back", " lead", "tab\t", "-rf", "é", "a b "]
    _repository(project, *names)
    (project / os.fsdecode(b"latin\xe9")).touch()
    files = listing()["data"]["files"]
    assert set(files) == {
        *('"new\\nline/x"', 'quo"te', '"\\"q"', '"\\\\back"', '" lead"', '"tab\\t"'),
        *("-rf", "é", "a b ", '"latin\\351"'),
    }
    assert listing(path='"new\\nline"')["data"]["files"] == ['"new\\nline/x"']


def test_a_pattern_keeps_the_names_that_fit(listing: List, project: Path) -> None:
    _touch(project, "a.py", "src/b.py", "src/deep/c.py", "src/d.md", "src/[x].el", "e.{py}")

    def found(pattern: str) -> list[str]:
        files: list[str] = listing(pattern=pattern)["data"]["files"]
        return files

    assert found("*.py") == ["a.py", "src/b.py", "src/deep/c.py"]
    assert found("src/*.py") == ["src/b.py"]
    assert found("src/**") == ["src/[x].el", "src/b.py", "src/d.md", "src/deep/c.py"]
    assert found("**/c.*") == ["src/deep/c.py"]
    assert found("?.{md,py}") == ["a.py", "src/b.py", "src/d.md", "src/deep/c.py"]
    assert found("!*.py") == ["e.{py}", "src/[x].el", "src/d.md"]
    assert found("!src") == ["a.py", "e.{py}"]
    assert found(r"\[x\]*") == found("[[]*") == ["src/[x].el"]
    assert found("[!a-c].*") == ["e.{py}", "src/d.md"]
    for bad in ("[a", "{a", "a}", "a\0", "/", "!"):
        assert listing(pattern=bad)["status"] == "error"
    envelope = listing(pattern="*.rs")
    nothing = (
        "No files in . for pattern *.rs; 6 files there, apart from what .gitignore and .ignore"
    )
    assert _lines(envelope) == [f"{nothing} files name."]


def test_folders_depth_order_and_metadata(listing: List, project: Path) -> None:
    _touch(project, "a.py", "src/b.py", "src/deep/c.py", "src/deep/er/d.py")
    (project / "src/b.py").write_text("12345\n")
    os.utime(project / "a.py", (0, 86_400))
    assert _lines(listing(kind="folders"))[:4] == [
        "./ 1",
        "src/ 1",
        "src/deep/ 1",
        "src/deep/er/ 1",
    ]
    assert _lines(listing(depth=1))[:2] == ["a.py", "src/ (3 files)"]
    assert _lines(listing(depth=2))[:4] == ["a.py", "src/", "b.py", "deep/ (2 files)"]
    assert _lines(listing(path="src", depth=1))[:3] == ["src/", "b.py", "deep/ (2 files)"]
    largest = listing(sort="size")
    assert largest["data"]["files"][0]["path"] == "src/b.py"
    assert _lines(listing(sort="recent"))[3] == "a.py 2 1970-01-02 00:00"
    assert listing(metadata=True, depth=1)["data"]["files"] == [
        {"path": "a.py", "size": 2, "modified": "1970-01-02T00:00:00Z"}
    ]


def test_max_files_limits_a_page_and_the_token_brings_the_next(
    listing: List, project: Path
) -> None:
    _touch(project, *(f"d{n}/f{m}" for n in range(3) for m in range(3)))
    first = listing(max_files="4")
    assert _lines(first)[:6] == ["d0/", "f0", "f1", "f2", "d1/", "f0"]
    assert "Showing 4 of 9 files." in first["text"]
    second = listing(continuation_token=first["data"]["continuation_token"])
    assert _lines(second)[0] == "d1/ (continued)"
    assert second["data"]["files"] == ["d1/f1", "d1/f2", "d2/f0", "d2/f1"]


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("gone", "does not exist"),
        ("a", "not a folder"),
        ("..", "outside the project"),
        ("out", "outside the project"),
        ("/etc", "outside the project"),
        (".git", "git's own"),
        ("x\0", "NUL"),
    ],
)
def test_what_is_no_folder_of_the_project_is_refused(
    listing: List, project: Path, path: str, told: str
) -> None:
    _repository(project, "a")
    (project / "out").symlink_to("/etc")
    envelope = listing(path=path)
    assert envelope["status"] == "error"
    assert told in envelope["message"]


@pytest.mark.parametrize(
    "arguments",
    [
        {"max_files": 0},
        {"max_files": -5},
        {"depth": "0"},
        {"sort": "name"},
        {"kind": "-o"},
        {"pattern": ""},
        {"all": True},
    ],
)
def test_arguments_that_do_not_fit_are_a_result_for_the_model(
    listing: List, arguments: dict[str, Any]
) -> None:
    assert listing(**arguments)["status"] == "error"


def test_an_empty_project_and_a_repository_without_commits_list_what_there_is(
    listing: List, project: Path
) -> None:
    assert "0 files there" in listing()["text"]
    _git(project, "init", "-q")
    _touch(project, "new")
    assert listing()["data"]["files"] == ["new"]


def test_the_line_that_stays_tells_the_number_and_the_types(
    sidecar: Connection, session: str, listing: List, project: Path
) -> None:
    _touch(project, *(f"src/a{n}.el" for n in range(300)), *(f"src/b{n}.md" for n in range(5)))
    listing(path="src")
    line = sidecar.request("worklog/list", session_id=session)["entries"][0]["compressed"]
    assert "Listed 305 files in src. Types: .el (300), .md (5)" in line


def test_the_description_suggests_what_the_budget_allows(sidecar: Connection, session: str) -> None:
    begun = sidecar.request(
        "turn/begin", session_id=session, model="claude-opus-4-6", system="s", user_message="hello"
    )
    tool = next(tool for tool in begun["tools"] if tool["name"] == "project_files")
    assert "Current budget allows ~200 files with metadata." in tool["description"]
    limit = tool["input_schema"]["properties"]["max_files"]
    assert "budget suggests: 200" in limit["description"]
