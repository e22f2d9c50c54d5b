"""Tests of a project's files: located, opened without escaping, and shown as Emacs has them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from efrit_budget.project.paths import OutsideError
from efrit_budget.project.project import Project, open_beneath


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project with a file, beside a folder that is allowed and one that is not."""
    for name in ("project/folder", "allowed", "elsewhere"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "project" / "folder" / "file").write_text("inside", encoding="utf-8")
    (tmp_path / "allowed" / "file").write_text("allowed", encoding="utf-8")
    (tmp_path / "elsewhere" / "file").write_text("xyzzy", encoding="utf-8")
    return Project(tmp_path / "project", (tmp_path / "allowed",))


def read(project: Project, shown: str) -> str:
    """Return the contents of a file."""
    with os.fdopen(open_beneath(project.locate(shown)), encoding="utf-8") as file:
        return file.read()


def test_a_file_is_named_from_the_root_on(project: Project) -> None:
    located = project.locate(str(project.root / "folder" / "file"))
    assert located.shown == "folder/file"
    assert read(project, "./folder/../folder/file") == "inside"


def test_what_lies_in_an_allowed_folder_is_named_absolutely(project: Project) -> None:
    allowed = project.root.parent / "allowed" / "file"
    assert project.locate(str(allowed)).shown == str(allowed)
    assert project.locate("../allowed/file").shown == str(allowed)
    assert read(project, "../allowed/file") == "allowed"


@pytest.mark.parametrize("path", ["../elsewhere/file", "..", "/etc/passwd", "../allowed/../x"])
def test_what_lies_elsewhere_is_refused_by_the_projects_name(project: Project, path: str) -> None:
    with pytest.raises(OutsideError) as refused:
        project.locate(path)
    assert str(project.root) in refused.value.message


def test_a_link_that_takes_the_place_of_the_file_is_not_followed(project: Project) -> None:
    located = project.locate("folder/file")
    (project.root / "folder" / "file").unlink()
    (project.root / "folder" / "file").symlink_to("../../elsewhere/file")
    with pytest.raises(OutsideError, match="replaced"):
        open_beneath(located)


def test_a_link_that_takes_the_place_of_a_folder_is_not_followed(project: Project) -> None:
    located = project.locate("folder/file")
    (project.root / "folder").rename(project.root / "moved")
    (project.root / "folder").symlink_to("../elsewhere")
    with pytest.raises(OutsideError, match="replaced"):
        open_beneath(located)


def test_a_link_to_a_secret_is_one_too(project: Project) -> None:
    (project.root / ".env").write_text("KEY=1", encoding="utf-8")
    (project.root / "plain").symlink_to(".env")
    (project.root / "id_rsa").symlink_to("folder/file")
    assert project.is_secret(project.locate("plain"))
    assert project.is_secret(project.locate("id_rsa"))
    assert not project.is_secret(project.locate("folder/file"))
