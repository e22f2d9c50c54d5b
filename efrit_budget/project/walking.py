"""Which files rg looks at: those that git would show, hidden ones included, links not followed."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from efrit_budget.cancellation import Cancellation
from efrit_budget.project.git_folder import GitError, git_folder
from efrit_budget.project.git_settings import personal_files
from efrit_budget.project.ripgrep import run_rg

FLAGS = ("--no-config", "--color=never", "--hidden", "--no-follow", "--no-mmap")
NEVER = "--glob=!.git"
"""The last glob that fits decides, so this one comes last."""


@dataclass(frozen=True)
class Walk:
    """A folder, and what of it is looked at: from `root` on, below `target`."""

    rg: Path
    root: Path
    target: str
    """A file or folder, relative to the root; "." is all of it."""
    cancellation: Cancellation

    @cached_property
    def flags(self) -> list[str]:
        """What every command takes; where there is a repository, git's rules say what is ignored.

        Elsewhere the same files are read, but not those of folders above.
        """
        if in_repository(self.root):
            return [*FLAGS, "--no-ignore-dot"]
        return [*FLAGS, "--no-require-git", "--no-ignore-parent"]

    @property
    def paths(self) -> list[str]:
        """The end of a command that walks; rg puts "./" before names when it is given "."."""
        return [] if self.target == "." else ["--", self.target]

    @cached_property
    def readable(self) -> tuple[Path, ...]:
        """What rg may read: the files below the root, and what git's rules make of them."""
        above = [folder / ".gitignore" for folder in self.root.parents]
        return (self.root, *filter(_is_plain, above), *_excluding(self.root), *personal_files())

    def names(self, flags: Sequence[str] = ()) -> set[str]:
        """The files it comes to, relative to the root."""
        command = [str(self.rg), *self.flags, "--files", "--null", *flags, NEVER]
        found = run_rg(
            [*command, *self.paths],
            cwd=self.root,
            cancellation=self.cancellation,
            readable=self.readable,
        )
        return set(os.fsdecode(found.stdout).split("\0")[:-1])


def in_repository(folder: Path) -> bool:
    """Whether the folder, or one above it, holds a `.git`."""
    return any(os.path.lexists(above / ".git") for above in (folder, *folder.parents))


def _excluding(root: Path) -> list[Path]:
    """The files that say where a repository keeps its own list of what is ignored, and the list."""
    try:
        found = git_folder(root)
    except GitError:
        return []
    files = (found.top / ".git", found.own / "commondir", found.shared / "info" / "exclude")
    return list(filter(_is_plain, files))


def _is_plain(path: Path) -> bool:
    """Whether it is a file itself, no link to one."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False
