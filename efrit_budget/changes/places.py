"""Which paths may be changed: files of the project, and nothing that belongs to git."""

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
class Place:
    """What is known of a path before anything is done to it."""

    path: str
    """As it is shown."""
    located: Located | None
    """None where it leads nowhere in the project."""
    mode: int | None
    """None where nothing is there."""
    secret: bool
    problem: str | None

    def told(self) -> dict[str, Json]:
        """What a client is told."""
        return {
            "path": self.path,
            "file": None if self.located is None else shown_name(str(self.located.path)),
            "exists": self.mode is not None,
            "is_file": self.mode is not None and stat.S_ISREG(self.mode),
            "secret": self.secret,
            "problem": self.problem,
        }


def place_of(project: Project, given: str) -> Place:
    """The place of a path as somebody gave it; what is wrong with it is its problem."""
    try:
        located = project.locate(given)
        mode = _mode(project, located)
        problem = _problem(located, mode, given)
    except OutsideError as error:
        return _nowhere(given, error.reason)
    except OSError as error:
        return _nowhere(given, error.strerror or str(error))
    except UnicodeEncodeError:
        return _nowhere(given, "it holds half a character, and no file's name can")
    return Place(located.shown, located, mode, project.is_secret(located), problem)


def _nowhere(given: str, problem: str) -> Place:
    return Place(same_form(given), None, None, secret=False, problem=problem)


def _mode(project: Project, located: Located) -> int | None:
    try:
        return project.stat(located).st_mode
    except FileNotFoundError:
        return None


def _problem(located: Located, mode: int | None, given: str) -> str | None:
    if _is_gits(located):
        return GITS_OWN
    if mode is not None:
        return OTHERS.get(stat.S_IFMT(mode))
    if _is_too_long(located.path):
        return "its name is too long"
    if meant_name(given).endswith("/"):
        return "a folder, by its last slash; name a file in it"
    return None


def _is_too_long(path: Path) -> bool:
    """Whether no file can have that name, in folders that are not there yet either."""
    whole = len(os.fsencode(path)) >= MOST_PATH_BYTES
    return whole or any(len(os.fsencode(name)) > MOST_NAME_BYTES for name in path.parts)


def _is_gits(located: Located) -> bool:
    """Whether git keeps itself there: under a `.git`, or in a folder that is made like one."""
    names = (*located.path.parts, *Path(located.given).parts)
    if any(name.casefold() == GIT for name in names):
        return True
    return any(_is_git_folder(folder) for folder in located.path.parents)


def _is_git_folder(folder: Path) -> bool:
    """Whether a folder is a repository, as git tells one."""
    return all(os.path.lexists(folder / name) for name in GITS_NAMES)
