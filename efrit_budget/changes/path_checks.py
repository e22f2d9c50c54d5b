"""Decide which paths may be changed: files of the project, but none of git's own."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from efrit_budget.errors import JsonObject
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
    """A path checked before an edit, and the problem that forbids the edit, or None."""

    path: str
    """The path as it is displayed."""
    located: Located | None
    """None if the path leads out of the project or cannot be examined."""
    facts: os.stat_result | None
    """The status of the file; None if there is no file."""
    secret: bool
    problem: str | None

    @property
    def is_file(self) -> bool:
        """Return whether there is a file, and not a folder or something else."""
        return self.facts is not None and stat.S_ISREG(self.facts.st_mode)

    def to_dict(self) -> JsonObject:
        """Return the checked path as the wire carries it."""
        return {
            "path": self.path,
            "file": None if self.located is None else shown_name(str(self.located.path)),
            "exists": self.facts is not None,
            "is_file": self.is_file,
            "secret": self.secret,
            "problem": self.problem,
        }


def check_path(project: Project, given: str) -> CheckedPath:
    """Return the path with its place, and with the problem that forbids an edit, if any."""
    try:
        located = project.locate(given)
        try:
            facts = project.stat(located)
        except FileNotFoundError:
            facts = None
        problem = _problem(located, facts, given)
    except OutsideError as error:
        problem = error.reason
    except OSError as error:
        problem = error.strerror or str(error)
    except UnicodeEncodeError:
        problem = "it holds half a character, and no file's name can"
    else:
        return CheckedPath(located.shown, located, facts, project.is_secret(located), problem)
    return CheckedPath(same_form(given), None, None, secret=False, problem=problem)


def _problem(located: Located, facts: os.stat_result | None, given: str) -> str | None:
    if _is_inside_git(located):
        return GITS_OWN
    if facts is not None:
        return OTHERS.get(stat.S_IFMT(facts.st_mode))
    is_too_long = len(os.fsencode(located.path)) >= MOST_PATH_BYTES
    if is_too_long or any(len(os.fsencode(p)) > MOST_NAME_BYTES for p in located.path.parts):
        return "its name is too long"
    if meant_name(given).endswith("/"):
        return "a folder, by its last slash; name a file in it"
    return None


def _is_inside_git(located: Located) -> bool:
    """Return whether the path is in a folder named .git, or in a folder with git's own files."""
    names = (*located.path.parts, *Path(located.given).parts)
    if any(name.casefold() == GIT for name in names):
        return True
    return any(
        all(os.path.lexists(folder / name) for name in GITS_NAMES)
        for folder in located.path.parents
    )
