"""Tests of git as tools run it: no other program runs, and nothing outside is shown."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from efrit_budget.cancellation import Cancellation
from efrit_budget.project.git.folder import GitError
from efrit_budget.project.git.names import unquote
from efrit_budget.project.git.repository import open_repository
from tests.connection import Connection
from tests.local_sidecar import LocalSidecar
from tests.project.git.hostile import TRAPS, HostileRepository
from tests.repository import Repository
from tests.soak import stride

CALLS: list[tuple[str, dict[str, Any]]] = [
    ("vcs_status", {}),
    ("vcs_diff", {}),
    ("vcs_diff", {"staged": True}),
    ("vcs_diff", {"revision": "HEAD~1"}),
    ("vcs_diff", {"revision": "HEAD~1..HEAD"}),
    ("vcs_diff", {"stat_only": True}),
    ("vcs_diff", {"path": "a.txt"}),
    ("vcs_log", {}),
    ("vcs_log", {"stat": True, "path": "a.txt"}),
    ("vcs_log", {"grep": "s", "author": "a"}),
    ("vcs_show", {"revision": "HEAD"}),
    ("vcs_show", {"revision": "HEAD~1"}),
    ("vcs_show", {"revision": "HEAD:a.txt"}),
    ("vcs_blame", {"path": "a.txt"}),
    ("vcs_blame", {"path": "b.odd", "revision": "HEAD"}),
]
"""Calls of every tool, in each way that git works differently for."""

Calls = Callable[[Path], list[dict[str, Any]]]


@pytest.fixture
def calls(sidecar: Connection) -> Calls:
    """Make every call on a project, and give the envelopes."""

    def made(root: Path) -> list[dict[str, Any]]:
        session = sidecar.request("session/open", root=str(root))["session_id"]
        return [
            sidecar.request(
                "tools/call",
                session_id=session,
                name=name,
                arguments=arguments,
                tool_use_id=f"use-{number}",
            )
            for number, (name, arguments) in enumerate(CALLS)
        ]

    return made


@pytest.fixture
def hostile(project: Path, tmp_path: Path) -> HostileRepository:
    """A hostile repository with no trap set yet."""
    outside = tmp_path / "outside"
    outside.mkdir()
    return HostileRepository(Repository(project), outside)


@pytest.mark.parametrize("name", [name for name, trap in TRAPS.items() if trap.sprung_by])
def test_a_trap_runs_its_program_under_plain_git(hostile: HostileRepository, name: str) -> None:
    trap = TRAPS[name]
    hostile.set(trap)
    assert not hostile.mark.exists()
    hostile.repository.git(*(trap.sprung_by or ()), fails=True)
    assert hostile.mark.exists()


@pytest.mark.soak
def test_no_setting_of_a_repository_makes_a_tool_run_a_program(
    hostile: HostileRepository, calls: Calls
) -> None:
    for name, trap in list(TRAPS.items())[:: stride(4)]:
        hostile.reset()
        hostile.set(trap)
        hostile.mark.unlink(missing_ok=True)
        envelopes = calls(hostile.repository.folder)
        assert not hostile.mark.exists(), name
        assert {envelope["status"] for envelope in envelopes} == {"success"}, (name, envelopes)


def test_all_traps_at_once_run_nothing(hostile: HostileRepository, calls: Calls) -> None:
    for trap in TRAPS.values():
        hostile.set(trap)
    hostile.mark.unlink(missing_ok=True)
    envelopes = calls(hostile.repository.folder)
    assert not hostile.mark.exists()
    assert {envelope["status"] for envelope in envelopes} == {"success"}


def test_what_the_environment_says_to_git_changes_nothing(
    hostile: HostileRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Repository(tmp_path / "other").commit("elsewhere", xyzzy="x\n")
    program = str(hostile.program)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other" / ".git"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", program)
    monkeypatch.setenv("GIT_PAGER", program)
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", f"'core.fsmonitor={program}'")
    with LocalSidecar() as sidecar:
        session = sidecar.request("session/open", root=str(hostile.repository.folder))["session_id"]
        texts = [
            sidecar.request(
                "tools/call",
                session_id=session,
                name=name,
                arguments=arguments,
                tool_use_id=f"use-{number}",
            )["text"]
            for number, (name, arguments) in enumerate(CALLS)
        ]
    assert not hostile.mark.exists()
    assert "a.txt" in texts[0]
    assert "elsewhere" not in "".join(texts)


def test_objects_that_are_missing_are_not_fetched(
    repository_of: Callable[[str], Repository], calls: Calls, tmp_path: Path
) -> None:
    repository = repository_of("project")
    repository.commit("first", **{"a.txt": "one\n", "b.odd": "b\n"})
    repository.commit("second", **{"a.txt": "two\n"})
    mark = tmp_path / "mark"
    repository.git("config", "extensions.partialClone", "evil")
    repository.git("config", "remote.evil.promisor", "true")
    repository.git("config", "remote.evil.url", f"ext::touch {mark}")
    repository.git("config", "protocol.ext.allow", "always")
    blob = repository.git("rev-parse", "HEAD~1:a.txt")
    (repository.folder / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    repository.git("show", "HEAD", fails=True)
    assert mark.exists()
    mark.unlink()
    envelopes = calls(repository.folder)
    assert not mark.exists()
    assert "error" in {envelope["status"] for envelope in envelopes}


@pytest.fixture
def repository_of(tmp_path: Path) -> Callable[[str], Repository]:
    """Make a repository in a folder of the test's own."""
    return lambda name: Repository(tmp_path / name)


def texts_of(envelopes: list[dict[str, Any]]) -> str:
    """Return all texts of the envelopes."""
    return "\n".join(envelope["text"] for envelope in envelopes)


def test_a_working_tree_that_is_set_to_another_folder_shows_nothing_of_it(
    repository_of: Callable[[str], Repository], calls: Calls, tmp_path: Path
) -> None:
    repository = repository_of("project")
    repository.commit("first", **{"a.txt": "one\n", "b.odd": "b\n"})
    repository.commit("second", **{"a.txt": "two\n"})
    private = tmp_path / "private"
    private.mkdir()
    (private / "a.txt").write_text("xyzzy\n", encoding="utf-8")
    repository.git("config", "core.worktree", str(private))
    assert "xyzzy" in repository.git("diff")
    told = texts_of(calls(repository.folder))
    assert "xyzzy" not in told
    assert "Nothing has changed." in told


def test_a_git_file_that_leads_to_another_repository_is_refused_and_explained(
    repository_of: Callable[[str], Repository], calls: Calls, project: Path
) -> None:
    private = repository_of("private")
    private.commit("xyzzy", **{"a.txt": "xyzzy\n"})
    (project / ".git").write_text(f"gitdir: {private.folder}/.git\n", encoding="utf-8")
    envelopes = calls(project)
    assert {envelope["status"] for envelope in envelopes} == {"error"}
    assert "xyzzy" not in texts_of(envelopes)
    assert "core.worktree" in envelopes[0]["message"]
    private.git("config", "core.worktree", str(project))
    assert calls(project)[0]["status"] == "success"


def test_a_common_folder_that_leads_to_another_repository_is_refused(
    repository_of: Callable[[str], Repository], calls: Calls
) -> None:
    private = repository_of("private")
    private.commit("xyzzy", **{"a.txt": "xyzzy\n"})
    repository = repository_of("project")
    commondir = repository.folder / ".git" / "commondir"
    commondir.write_text(f"{private.folder}/.git\n", encoding="utf-8")
    assert "xyzzy" in repository.git("log", "--all")
    envelopes = calls(repository.folder)
    assert {envelope["status"] for envelope in envelopes} == {"error"}
    assert "xyzzy" not in texts_of(envelopes)


def test_linked_working_trees_submodules_and_separate_folders_are_what_they_are(
    repository_of: Callable[[str], Repository], tmp_path: Path
) -> None:
    library = repository_of("library")
    library.commit("library", inner="x\n")
    repository = repository_of("main")
    allow = ("-c", "protocol.file.allow=always")
    repository.git(*allow, "submodule", "--quiet", "add", str(library.folder), "sub")
    repository.commit("first", a="a\n")
    repository.git("worktree", "add", "-q", str(tmp_path / "linked"), "-b", "side")
    for folder in ("main", "main/sub", "linked"):
        opened = open_repository(tmp_path / folder, Cancellation())
        assert opened.folder.top == (tmp_path / folder).resolve()
        assert opened.run("rev-parse", "--is-inside-work-tree").stdout == b"true\n"


def test_a_bare_repository_among_the_files_is_not_looked_into(
    repository_of: Callable[[str], Repository], calls: Calls, project: Path
) -> None:
    repository_of("source").commit("xyzzy", **{"a.txt": "xyzzy\n"})
    Repository(project.parent / "source").git("clone", "-q", "--bare", ".", str(project / "bare"))
    envelopes = calls(project / "bare")
    assert {envelope["status"] for envelope in envelopes} == {"error"}
    assert "xyzzy" not in texts_of(envelopes)


def test_a_repository_of_another_user_is_explained(
    repository_of: Callable[[str], Repository], calls: Calls, home: Path
) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder to another user")
    repository = repository_of("project")
    repository.commit("first", **{"a.txt": "one\n"})
    os.chown(repository.folder, 4321, 4321)
    os.chown(repository.folder / ".git", 4321, 4321)
    envelope = calls(repository.folder)[0]
    assert envelope["status"] == "error"
    assert "safe.directory" in envelope["message"]
    assert "another user" in envelope["message"]


def test_outside_of_git_each_tool_says_so_and_what_works_instead(
    calls: Calls, project: Path
) -> None:
    for envelope in calls(project):
        assert envelope["status"] == "error"
        assert "is not in a git repository" in envelope["message"]
        assert "search_content" in envelope["message"]


def test_a_broken_repository_is_an_error_without_a_trace(
    repository_of: Callable[[str], Repository], calls: Calls
) -> None:
    repository = repository_of("project")
    repository.commit("first", **{"a.txt": "one\n"})
    (repository.folder / ".git" / "config").write_text("[broken\n", encoding="utf-8")
    for envelope in calls(repository.folder):
        assert envelope["status"] == "error"
        assert "Traceback" not in envelope["text"]
    (repository.folder / ".git" / "config").unlink()
    (repository.folder / ".git" / "HEAD").write_text("nonsense\n", encoding="utf-8")
    assert {envelope["status"] for envelope in calls(repository.folder)} == {"error"}


def test_a_project_inside_a_repository_shows_nothing_beside_it(
    repository_of: Callable[[str], Repository], calls: Calls
) -> None:
    repository = repository_of("outer")
    repository.commit("first", **{"inner/a.txt": "one\n", "inner/b.odd": "b\n", "xyzzy": "x\n"})
    repository.commit("second", **{"inner/a.txt": "two\n", "xyzzy": "xyzzy\n"})
    repository.write("inner/a.txt", "three\n")
    repository.write("xyzzy", "xyzzy xyzzy\n")
    repository.write("untracked-xyzzy", "")
    envelopes = calls(repository.folder / "inner")
    assert {envelope["status"] for envelope in envelopes} == {"success"}
    told = texts_of(envelopes)
    assert "xyzzy" not in told
    assert "a.txt" in told
    assert "inner/" not in told


def test_a_lock_on_the_index_is_neither_taken_nor_waited_for(
    repository_of: Callable[[str], Repository], calls: Calls
) -> None:
    repository = repository_of("project")
    repository.commit("first", **{"a.txt": "one\n", "b.odd": "b\n"})
    repository.commit("second", **{"a.txt": "two\n"})
    index = repository.folder / ".git" / "index"
    (repository.folder / ".git" / "index.lock").touch()
    before = index.read_bytes()
    assert {envelope["status"] for envelope in calls(repository.folder)} == {"success"}
    assert index.read_bytes() == before


def test_a_cancelled_call_leaves_no_git_behind(project: Path) -> None:
    Repository(project).commit("first", a="a\n")
    cancellation = Cancellation()
    repository = open_repository(project, cancellation)
    cancellation.cancel()
    with pytest.raises(Exception, match="cancelled"):
        repository.run("log")


def test_a_nul_in_an_argument_is_refused(project: Path) -> None:
    Repository(project)
    with pytest.raises(GitError, match="NUL"):
        open_repository(project, Cancellation()).run("log", "--grep=\0")


@pytest.mark.parametrize(
    ("printed", "name"),
    [
        (b"plain", "plain"),
        (rb'"n\nl\t\"\\"', 'n\nl\t"\\'),
        (rb'"\303\251\377"', "é\udcff"),
        (rb'"\a\b\f\v\r"', "\a\b\f\v\r"),
    ],
)
def test_names_are_read_as_git_quotes_them(printed: bytes, name: str) -> None:
    assert unquote(printed) == name
