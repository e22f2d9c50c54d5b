"""Where the repository of a folder is, without asking git.

Git would believe a repository's own configuration about where its working tree lies, and would
follow its files to other repositories; what is found here is what git is told.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from efrit_budget.errors import EfritError
from efrit_budget.project.paths import shown_name

POINTER = "gitdir: "
MOST_POINTER_BYTES = 8192
UNDER_WAY = {
    "rebase-merge": "rebasing",
    "rebase-apply": "rebasing",
    "MERGE_HEAD": "merging",
    "CHERRY_PICK_HEAD": "cherry-picking",
    "REVERT_HEAD": "reverting",
    "BISECT_LOG": "bisecting",
}


class GitError(EfritError):
    """Git cannot do what it was asked; the message tells what to do about it."""


@dataclass(frozen=True)
class GitFolder:
    """A repository: its working tree, and the folders it is kept in."""

    top: Path
    """The working tree, the folder that holds `.git`."""
    own: Path
    """What is this working tree's alone: HEAD, the index, a merge under way."""
    shared: Path
    """What linked working trees have in common: objects and branches."""

    @property
    def is_shallow(self) -> bool:
        """Whether history was cut off when it was cloned."""
        return (self.shared / "shallow").is_file()

    @property
    def under_way(self) -> str:
        """What was begun and not finished: merging, say; often nothing."""
        begun = [word for name, word in UNDER_WAY.items() if (self.own / name).exists()]
        return ", ".join(dict.fromkeys(begun))


def git_folder(root: Path) -> GitFolder:
    """The repository that `root` is in; none, or one that is somewhere else, is refused."""
    home = root.resolve()
    for folder in (home, *home.parents):
        found = _kept_in(folder)
        if found is not None:
            return found
    raise GitError(
        f"{shown_name(str(root))} is not in a git repository, so there is no history to look at. "
        "project_files, search_content and read_file work without one."
    )


def _kept_in(top: Path) -> GitFolder | None:
    """The repository whose working tree begins at `top`, if one does."""
    entry = top / ".git"
    own = (top / _pointer(entry)).resolve() if entry.is_file() else entry.resolve()
    if not (own / "HEAD").exists() and not (own / "HEAD").is_symlink():
        return None
    shared = (own / _first_line(own / "commondir")).resolve()
    if not (shared / "objects").is_dir():
        return None
    found = GitFolder(top, own, shared)
    if not _belongs(found):
        raise _elsewhere(found)
    return found


def _pointer(file: Path) -> str:
    return _first_line(file).removeprefix(POINTER)


def _first_line(file: Path) -> str:
    """The first line of a small file; nothing where there is none."""
    try:
        with file.open("rb") as opened:
            line = opened.read(MOST_POINTER_BYTES).partition(b"\n")[0]
    except OSError:
        return ""
    return os.fsdecode(line.rstrip(b"\r")).replace("\0", "")


def _belongs(found: GitFolder) -> bool:
    """Whether a repository is kept in its working tree, or says itself that this one is its own.

    Else a `.git` file that came with a project could show the history of any other.
    """
    if found.shared != found.own and found.shared / "worktrees" != found.own.parent:
        return False
    if found.top in found.shared.parents:
        return True
    if found.shared != found.own:
        return Path(_first_line(found.own / "gitdir")).resolve() == (found.top / ".git").resolve()
    return _stated_work_tree(found) == found.top


def _stated_work_tree(found: GitFolder) -> Path | None:
    """What `core.worktree` in the repository's own file says, as submodules have it."""
    try:
        lines = (found.own / "config").read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return None
    for line in lines:
        key, _, value = line.partition("=")
        if key.strip().lower() == "worktree":
            return (found.own / value.strip().strip('"')).resolve()
    return None


def _elsewhere(found: GitFolder) -> GitError:
    top, kept = (shown_name(str(path)) for path in (found.top, found.shared))
    return GitError(
        f"{top}/.git leads to the repository {kept}, outside the project, which does not name "
        f"{top} as a working tree of its own; so its history is not shown. If it is meant, the "
        f"person can run: git --git-dir={kept} config core.worktree {top}"
    )
