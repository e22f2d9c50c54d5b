"""`search_content` never leaves the project, shows secrets or takes data for options."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.connection import Connection
from tests.local_sidecar import LocalSidecar
from tests.tools.searched import Search, git, lines_of, places_of, searching, write


@pytest.fixture
def search(sidecar: Connection, session: str) -> Search:
    """Call the tool with these arguments."""
    return searching(sidecar, session)


@pytest.mark.parametrize("pattern", ["--files", "-x", "--pre=sh", "-e", "--", "-"])
def test_a_pattern_that_looks_like_an_option_is_only_text(
    search: Search, project: Path, pattern: str
) -> None:
    write(project, {"a": f"one\n{pattern} two\n", pattern.strip("-") + "-": "three\n"})
    assert places_of(search(pattern, literal=True, path="a")) == [("a", 2)]


def test_names_that_look_like_options_or_hold_lines_are_exact(
    search: Search, project: Path
) -> None:
    names = ["-dash", "--files", "new\nline", 'quo"te', "\\back", "12:3:x", " lead", "a\n\nb"]
    write(project, {f"{name}/in" if name == "-dash" else name: "here\n" for name in names})
    (project / os.fsdecode(b"latin\xe9")).write_text("here\n")
    envelope = search("here")
    paths = {path for path, _ in places_of(envelope)}
    assert paths == {
        *("-dash/in", "--files", '"new\\nline"', 'quo"te', '"\\\\back"', "12:3:x", " lead"),
        *('"a\\n\\nb"', '"latin\\351"'),
    }
    assert envelope["data"]["matching_files"] == 9
    assert len(lines_of(envelope)) == 2 * 9 + 1
    for shown in paths:
        assert [path for path, _ in places_of(search("here", path=shown))] == [shown]
    assert [path for path, _ in places_of(search("here", path="-dash"))] == ["-dash/in"]


def test_tracked_dotfiles_are_searched_and_gits_own_files_never(
    search: Search, project: Path
) -> None:
    git(project, "init", "-q")
    write(project, {".ci/build": "ref\n", ".gitignore": "", "sub/.git": "gitdir: ref\n"})
    assert places_of(search("ref")) == [(".ci/build", 1)]
    assert search("ref", path=".git")["status"] == "error"


def test_files_that_may_hold_secrets_are_left_out_and_named_whether_they_match_or_not(
    search: Search, project: Path
) -> None:
    git(project, "init", "-q")
    names = [
        ".env",
        "deploy/Server.PEM",
        "id_rsa",
        ".ssh/deep/key",
        "odd [x].key",
        "id_x ",
        ".env.example",
    ]
    write(project, {**dict.fromkeys(names, "TOKEN=1\n"), "ignored/.env": "TOKEN", "a": "TOKEN\n"})
    write(project, {".gitignore": "ignored\n"})
    envelope = search("TOKEN")
    assert places_of(envelope) == [(".env.example", 1), ("a", 1)]
    assert (
        "Not searched, may hold secrets: .env, .ssh/deep/key, deploy/Server.PEM, "
        in (envelope["text"])
    )
    absent = search("absent")
    assert [line for line in lines_of(absent) if "secrets" in line] == [
        line for line in lines_of(envelope) if "secrets" in line
    ]
    assert "2 matching lines in 2 files." in lines_of(envelope)
    assert "secrets" not in search("TOKEN", glob="a")["text"]


def test_a_secret_file_is_searched_when_it_is_named_and_the_person_agrees(
    sidecar: Connection, session: str, project: Path
) -> None:
    write(project, {".env": "TOKEN=1\n"})
    call = {
        "session_id": session,
        "name": "search_content",
        "arguments": {"pattern": "TOKEN", "path": ".env"},
        "tool_use_id": "use-secret",
    }
    asked = sidecar.request("tools/call", **call)
    assert asked["status"] == "needs_confirmation"
    assert "TOKEN" not in asked["text"]
    agreed = sidecar.request("tools/call", **call, confirm_id=asked["confirm"]["id"])
    assert places_of(agreed) == [(".env", 1)]


def test_links_are_not_followed_and_paths_outside_are_refused(
    search: Search, project: Path, tmp_path: Path
) -> None:
    write(tmp_path, {"outside/a": "x\n"})
    write(project, {"in": "x\n"})
    (project / "link").symlink_to(tmp_path / "outside")
    (project / "file").symlink_to(tmp_path / "outside" / "a")
    assert places_of(search("x")) == [("in", 1)]
    for path in ("link", "file", "..", "/etc", "../outside/a", "a\0b"):
        assert search("x", path=path)["status"] == "error"
    assert "does not exist" in search("x", path="gone")["message"]


def test_a_folder_allowed_beside_the_project_is_searched_and_its_secrets_are_not(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {"other/.ssh/mine": "x\n", "other/a": "x\n", "other/.ssh/known_hosts": "x\n"})
    roots = [str(tmp_path / "other"), str(tmp_path / "other/.ssh")]
    monkeypatch.setenv("EFRIT_BUDGET_TOOLS__EXTRA_ROOTS", json.dumps(roots))
    other = str(tmp_path / "other")
    with LocalSidecar() as sidecar:
        session = sidecar.request("session/open", root=str(project))["session_id"]
        call = {"session_id": session, "name": "search_content"}
        for number, path in enumerate([other, f"{other}/.ssh"]):
            found = sidecar.request(
                "tools/call",
                **call,
                arguments={"pattern": "x", "path": path},
                tool_use_id=f"use-{number}",
            )
            assert (f"{other}/.ssh/known_hosts", 1) in places_of(found)
            assert f"Not searched, may hold secrets: {other}/.ssh/mine" in lines_of(found)


def test_a_pipe_is_not_waited_for(search: Search, project: Path) -> None:
    os.mkfifo(project / "pipe")
    write(project, {"a": "x\n"})
    assert "neither a file nor a folder" in search("x", path="pipe")["message"]
    assert places_of(search("x")) == [("a", 1)]


def test_no_configuration_of_rg_is_read(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ripgreprc").write_text(f"--pre={tmp_path / 'program'}\n")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(tmp_path / "ripgreprc"))
    write(project, {"a": "x\n", ".rgignore": "a\n", ".ignore": "a\n", ".git/HEAD": ""})
    with LocalSidecar() as sidecar:
        session = sidecar.request("session/open", root=str(project))["session_id"]
        call = {"session_id": session, "name": "search_content", "tool_use_id": "use-1"}
        found = sidecar.request("tools/call", **call, arguments={"pattern": "x"})
    assert places_of(found) == [("a", 1)]
