"""The files rg visits: those git would show, hidden ones included."""

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from efrit_budget.cancellation import Cancellation
from efrit_budget.project.git.folder import GitError, git_folder
from efrit_budget.project.git.settings_files import personal_files
from efrit_budget.project.processes.run import Finished
from efrit_budget.project.search.ripgrep import run_rg

FLAGS = ("--no-config", "--color=never", "--hidden", "--no-follow", "--no-mmap")
IN_REPOSITORY, ELSEWHERE = ("--no-ignore-dot",), ("--no-require-git", "--no-ignore-parent")
NEVER = "--glob=!.git"
"""The flag that leaves out `.git`; it comes last, since the last matching glob decides."""


@dataclass(frozen=True)
class Walk:
    """A folder and the part of it to visit."""

    rg: Path
    root: Path
    target: str
    """A file or folder, relative to the root; "." is all of it."""
    cancellation: Cancellation

    def run(self, flags: Sequence[str], kept_bytes: int | None = None) -> Finished:
        """Run rg on the files of this walk; it can read these, and the rules by which it ignores.

        In a repository these rules are those of git, elsewhere those below the root.
        """
        rules = [folder / ".gitignore" for folder in self.root.parents]
        entry = self.root / ".git"
        if entry.is_symlink() or not entry.is_dir():  # else the repository is inside the root
            with suppress(GitError):
                found = git_folder(self.root)
                rules += [found.top / ".git", found.own / "commondir"]
                rules.append(found.shared / "info" / "exclude")
        plain = [file for file in rules if not file.is_symlink() and file.is_file()]
        ignoring = IN_REPOSITORY if in_repository(self.root) else ELSEWHERE
        target = [] if self.target == "." else ["--", self.target]
        return run_rg(
            [str(self.rg), *FLAGS, *ignoring, *flags, NEVER, *target],
            cwd=self.root,
            cancellation=self.cancellation,
            readable=(self.root, *plain, *personal_files()),
            kept_bytes=kept_bytes,
        )

    def names(self, flags: Sequence[str] = ()) -> set[str]:
        """Return the visited files, relative to the root."""
        found = self.run(["--files", "--null", *flags])
        return set(os.fsdecode(found.stdout).split("\0")[:-1])


def in_repository(folder: Path) -> bool:
    """Return whether the folder or a parent holds a `.git`."""
    return any(os.path.lexists(above / ".git") for above in (folder, *folder.parents))
