"""Decide which paths may be changed: project files, and nothing of git's."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from efrit_budget.errors import Json
from efrit_budget.project.paths import OutsideError, meant_name, same_form, shown_name
from efrit_budget.project.project import Located, Project

GIT = ".git"
MOST_NAME_BYTES, MOST_PATH_BYTES = 255, 4096
GITS_NAMES = ("HEAD", "objects", "refs")
GITS_OWN = "inside git's own folder, which is git's alone to change"
OTHERS = {
    stat.S_IFDIR: "a folder; name a file in it",
    stat.S_IFIFO: "a pipe, and only files are changed",
    stat.S_IFSOCK: "a socket, and only files are changed",
    stat.S_IFCHR: "a device, and only files are changed",
    stat.S_IFBLK: "a device, and only files are changed",
    stat.S_IFLNK: "a link that was changed meanwhile; call again",
}


@dataclass(frozen=True)
class CheckedPath:
    """A path checked before an edit, with any problem."""

    path: str
    """As it is shown."""
    located: Located | None
    """None where it leads nowhere in the project."""
    mode: int | None
    """None where nothing is there."""
    secret: bool
    problem: str | None

    def to_dict(self) -> dict[str, Json]:
        """Return the checked path as the wire carries it."""
        return {
            "path": self.path,
            "file": None if self.located is None else shown_name(str(self.located.path)),
            "exists": self.mode is not None,
            "is_file": self.mode is not None and stat.S_ISREG(self.mode),
            "secret": self.secret,
            "problem": self.problem,
        }


def check_path(project: Project, given: str) -> CheckedPath:
    """Check a path and return its place, with the problem if there is one."""
    try:
        located = project.locate(given)
        mode = _mode(project, located)
        problem = _problem(located, mode, given)
    except OutsideError as error:
        return _outside_place(given, error.reason)
    except OSError as error:
        return _outside_place(given, error.strerror or str(error))
    except UnicodeEncodeError:
        return _outside_place(given, "it holds half a character, and no file's name can")
    return CheckedPath(located.shown, located, mode, project.is_secret(located), problem)


def _outside_place(given: str, problem: str) -> CheckedPath:
    return CheckedPath(same_form(given), None, None, secret=False, problem=problem)


def _mode(project: Project, located: Located) -> int | None:
    try:
        return project.stat(located).st_mode
    except FileNotFoundError:
        return None


def _problem(located: Located, mode: int | None, given: str) -> str | None:
    if _is_inside_git(located):
        return GITS_OWN
    if mode is not None:
        return OTHERS.get(stat.S_IFMT(mode))
    if _is_too_long(located.path):
        return "its name is too long"
    if meant_name(given).endswith("/"):
        return "a folder, by its last slash; name a file in it"
    return None


def _is_too_long(path: Path) -> bool:
    """Return whether the path is too long for a file name on this system."""
    whole = len(os.fsencode(path)) >= MOST_PATH_BYTES
    return whole or any(len(os.fsencode(name)) > MOST_NAME_BYTES for name in path.parts)


def _is_inside_git(located: Located) -> bool:
    """Return whether the path is inside git's own folder."""
    names = (*located.path.parts, *Path(located.given).parts)
    if any(name.casefold() == GIT for name in names):
        return True
    return any(_is_git_folder(folder) for folder in located.path.parents)


def _is_git_folder(folder: Path) -> bool:
    """Return whether a folder is a git repository."""
    return all(os.path.lexists(folder / name) for name in GITS_NAMES)
