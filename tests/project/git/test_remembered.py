"""Tests of what is remembered of a repository: it is looked at again once it has changed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from efrit_budget.cancellation import Cancellation
from efrit_budget.project import file_cache
from efrit_budget.project.git import repository as git
from efrit_budget.project.git.folder import GitError, git_folder
from efrit_budget.project.git.repository import open_repository
from efrit_budget.project.git.settings_files import personal_files
from tests.repository import Repository


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """Make a repository all of whose files count as settled, and a home of its own."""
    monkeypatch.setattr(file_cache, "SETTLED_NS", -(10**15))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "home").mkdir()
    made = Repository(tmp_path / "project")
    made.commit("one", **{"a.txt": "one\n"})
    return made


def filters(repository: Repository) -> tuple[str, ...]:
    """Return the filters that are turned off for a call."""
    return open_repository(repository.folder, Cancellation()).filters


def _in_its_own(repository: Repository) -> None:
    repository.git("config", "filter.evil.clean", "false")


def _in_the_working_trees_own(repository: Repository) -> None:
    repository.git("config", "extensions.worktreeConfig", "true")
    filters(repository)
    repository.git("config", "--worktree", "filter.evil.clean", "false")


def _in_the_persons(repository: Repository) -> None:
    repository.git("config", "--global", "filter.evil.clean", "false")


def _in_an_included_file(repository: Repository) -> None:
    repository.git("config", "include.path", "more")
    filters(repository)
    (repository.folder / ".git" / "more").write_text('[filter "evil"]\nclean = false\n')


def _on_a_branch(repository: Repository) -> None:
    (repository.folder / ".git" / "more").write_text('[filter "evil"]\nclean = false\n')
    repository.git("config", "includeIf.onbranch:other.path", "more")
    filters(repository)
    repository.git("checkout", "-q", "-b", "other")


PLACES: list[Callable[[Repository], None]] = [
    _in_its_own,
    _in_the_working_trees_own,
    _in_the_persons,
    _in_an_included_file,
    _on_a_branch,
]


@pytest.mark.parametrize("place", PLACES)
def test_a_filter_that_comes_later_is_turned_off(
    repository: Repository, place: Callable[[Repository], None]
) -> None:
    assert filters(repository) == ()
    place(repository)
    assert filters(repository) == ("filter.evil.clean",)


def test_filters_are_read_once_while_no_settings_change(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    filters(repository)
    monkeypatch.setattr(git, "run", None)
    assert filters(repository) == ()


def test_settings_of_the_person_are_followed_as_they_change(repository: Repository) -> None:
    assert "home" not in str(personal_files())
    _in_the_persons(repository)
    settings = Path(os.environ["HOME"], ".gitconfig")
    assert settings in personal_files()
    before = settings.stat()
    settings.write_text(f"[core]\nexcludesFile = {repository.folder}/a.txt\n")
    os.utime(settings, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert repository.folder / "a.txt" in personal_files()
    settings.unlink()
    assert "home" not in str(personal_files())


def test_a_repository_that_is_gone_or_nearer_is_noticed(repository: Repository) -> None:
    inner = repository.folder / "inner"
    inner.mkdir()
    assert git_folder(inner).top == repository.folder
    Repository(inner)
    assert git_folder(inner).top == inner
    (inner / ".git").rename(inner / "gone")
    assert git_folder(inner).top == repository.folder
    (repository.folder / ".git").rename(repository.folder / "gone")
    with pytest.raises(GitError):
        git_folder(inner)


def test_where_links_lead_is_looked_at_each_time(repository: Repository, tmp_path: Path) -> None:
    refs = repository.folder / ".git" / "refs"
    (refs / "inside").write_text((refs / "heads" / "main").read_text())
    (refs / "heads" / "linked").symlink_to(refs / "inside")
    assert git_folder(repository.folder).top == repository.folder
    (refs / "inside").rename(tmp_path / "outside")
    (refs / "inside").symlink_to(tmp_path / "outside")
    with pytest.raises(GitError, match="outside"):
        git_folder(repository.folder)


def test_a_pointer_through_a_link_is_followed_each_time(tmp_path: Path) -> None:
    kept = Repository(tmp_path / "project" / "kept")
    (kept.folder.parent / "way").symlink_to(kept.folder)
    (kept.folder.parent / ".git").write_text("gitdir: way/.git\n")
    assert git_folder(kept.folder.parent).own == kept.folder / ".git"
    private = Repository(tmp_path / "private")
    (kept.folder.parent / "way").unlink()
    (kept.folder.parent / "way").symlink_to(private.folder)
    with pytest.raises(GitError, match="outside"):
        git_folder(kept.folder.parent)
