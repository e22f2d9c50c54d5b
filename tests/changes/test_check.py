"""The files that may be changed, and the reasons why others may not."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.changes.hands import INVALID, Hands
from tests.local_sidecar import LocalSidecar


def checked(hands: Hands, path: str) -> dict[str, Any]:
    """Return the reply of `changes/check` for one path."""
    found: dict[str, Any] = hands("check", paths=[path])["files"][0]
    return found


def problem(hands: Hands, path: str) -> str:
    """Return why a path is refused, and check that `changes/begin` gives the same reason."""
    told = checked(hands, path)["problem"]
    assert isinstance(told, str), f"nothing is wrong with {path!r}"
    refused = hands.error(
        "begin", tool_use_id="never", tool="t", files=[{"path": path, "kind": "edit"}]
    )
    assert refused.code == INVALID
    assert refused.data["fields"][0]["field"] == "files.0.path"
    assert told in refused.told
    assert hands("list")["changes"] == []
    return told


def test_a_file_is_told_with_its_real_path(hands: Hands) -> None:
    file = hands.project / "a.txt"
    file.write_text("a")
    found = file.stat()
    assert checked(hands, "./sub/../a.txt") == {
        "path": "a.txt",
        "file": str(file),
        "exists": True,
        "is_file": True,
        "secret": False,
        "problem": None,
        "size": 1,
        "stamp": f"1-{found.st_mtime_ns}",
        "modified": list(divmod(found.st_mtime_ns, 10**9)),
        "writable": True,
        "lock": None,
    }


def test_a_file_that_is_not_there_yet_is_found_through_the_folders_that_are(hands: Hands) -> None:
    (hands.project / "real").mkdir()
    (hands.project / "link").symlink_to("real")
    told = checked(hands, "link/new/a.txt")
    assert told["file"] == str(hands.project / "real" / "new" / "a.txt")
    assert told["path"] == "real/new/a.txt"
    assert not told["exists"]
    assert told["problem"] is None


def test_the_places_come_in_the_order_of_the_paths(hands: Hands) -> None:
    paths = ["b", "../x", "a", "b"]
    told = hands("check", paths=paths)["files"]
    assert [one["path"] for one in told] == paths


def test_a_file_that_usually_holds_secrets_is_told_as_such(hands: Hands) -> None:
    assert checked(hands, ".env")["secret"]
    assert checked(hands, "deep/id_rsa")["secret"]
    assert not checked(hands, "a.env.txt")["secret"]


@pytest.mark.parametrize("path", ["..", "../x", "a/../../x", "/etc/passwd"])
def test_a_path_out_of_the_project_is_a_problem(hands: Hands, path: str) -> None:
    assert "outside the project" in problem(hands, path)
    assert checked(hands, path)["file"] is None


def test_a_link_out_of_the_project_is_a_problem(hands: Hands, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (hands.project / "link").symlink_to(tmp_path / "elsewhere")
    (hands.project / "dangling").symlink_to(tmp_path / "nothing")
    assert "outside the project" in problem(hands, "link/a.txt")
    assert "outside the project" in problem(hands, "dangling")


def test_a_loop_of_links_is_a_problem(hands: Hands) -> None:
    (hands.project / "one").symlink_to("other")
    (hands.project / "other").symlink_to("one")
    assert problem(hands, "one")


def test_a_folder_that_is_allowed_beside_the_project_is_one_for_changes_too(
    hands: Hands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = tmp_path / "beside"
    beside.mkdir()
    monkeypatch.setenv("EFRIT_BUDGET_TOOLS__EXTRA_ROOTS", f'["{beside}"]')
    with LocalSidecar() as other:
        allowed = Hands(other, hands.project, hands.session)
        number = allowed.create(str(beside / "new" / "a.txt"), "a")
        assert allowed("undo", number=number)["path"] == str(beside / "new" / "a.txt")
    assert list(beside.iterdir()) == []


# What belongs to git


@pytest.fixture
def repository(hands: Hands) -> Path:
    """A repository with a submodule, a working tree linked to it, and one kept apart."""
    git = ["git", "-c", "user.name=n", "-c", "user.email=e", "-c", "protocol.file.allow=always"]
    project = hands.project
    library = project / "library.git"
    for command in (
        ["init", "-q"],
        ["init", "-q", "--bare", str(library)],
        ["commit", "-q", "--allow-empty", "-m", "first"],
        ["worktree", "add", "-q", "linked"],
        ["init", "-q", "--separate-git-dir", str(project / "kept"), str(project / "apart")],
    ):
        subprocess.run([*git, *command], cwd=project, check=True, capture_output=True)
    module = project / "apart"
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], cwd=module, check=True)
    added = ["submodule", "add", "-q", "./apart", "module"]
    subprocess.run([*git, *added], cwd=project, check=True, capture_output=True)
    (project / "to-git").symlink_to(".git")
    (project / "plain").mkdir()
    (project / "sub").mkdir()
    (project / "sub" / ".git").symlink_to("../plain")
    return project


@pytest.mark.parametrize(
    "path",
    [
        *(".git/config", ".git/hooks/pre-commit", ".GIT/config", "sub/.git/new"),
        *("to-git/config", "linked/.git", "apart/.git", "module/.git"),
        *(".git/modules/module/config", ".git/worktrees/linked/HEAD"),
        *("kept/config", "kept/hooks/post-checkout", "library.git/hooks/update"),
    ],
)
def test_what_git_keeps_is_a_problem_whatever_way_it_is_reached(
    hands: Hands, repository: Path, path: str
) -> None:
    assert "git's own folder" in problem(hands, path)


@pytest.mark.parametrize(
    "path", [".gitignore", ".gitmodules", ".github/a.yml", "linked/a", "module/a", "apart/a"]
)
def test_files_beside_what_git_keeps_are_files_like_others(
    hands: Hands, repository: Path, path: str
) -> None:
    assert checked(hands, path)["problem"] is None


# What is no file


def test_what_is_no_file_is_a_problem(hands: Hands, tmp_path: Path) -> None:
    os.mkfifo(hands.project / "pipe")
    (hands.project / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as listening:
        os.chdir(hands.project)
        listening.bind("socket")
    assert "pipe" in problem(hands, "pipe")
    assert "socket" in problem(hands, "socket")
    assert "folder" in problem(hands, "folder")
    assert "folder" in problem(hands, "new/")
    assert "folder" in problem(hands, "")


def test_a_file_below_a_file_is_a_problem(hands: Hands) -> None:
    (hands.project / "a.txt").write_text("a")
    assert problem(hands, "a.txt/b") == "Not a directory"


def test_a_name_that_no_file_can_have_is_a_problem(hands: Hands) -> None:
    assert "NUL" in problem(hands, "a\0b")
    assert "too long" in problem(hands, "n" * 256)
    assert "too long" in problem(hands, "new/" + "n" * 256)
    assert "too long" in problem(hands, "n/" * 5000 + "n")


@pytest.mark.parametrize(
    "name", ["new\nline", '"quoted"', "größe", "日本", " ", "-x", "\\", "a*b?"]
)
def test_any_name_a_file_can_have_may_be_changed(hands: Hands, name: str) -> None:
    (hands.project / name).write_text("before")
    number = hands.edit(hands("check", paths=[_quoted(name)])["files"][0]["path"], "after")
    assert hands("undo", number=number)["exists"]


def _quoted(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return name if escaped == name else f'"{escaped}"'
