"""Convert file names between git's form and ours."""

import os
from pathlib import Path

from efrit_budget.project.git.folder import GitError
from efrit_budget.project.git.repository import Repository
from efrit_budget.project.paths import OutsideError, meant_name, same_form, shown_name, unescaped
from efrit_budget.project.project import Project

SIGNS = {
    b"a": b"\a",
    b"b": b"\b",
    b"t": b"\t",
    b"n": b"\n",
    b"v": b"\v",
    b"f": b"\f",
    b"r": b"\r",
}


def unquote(printed: bytes) -> str:
    """Return the file name that git printed plain or quoted."""
    if not printed.startswith(b'"'):
        return os.fsdecode(printed)
    return unescaped(printed[1:-1], SIGNS)


def name_from_root(project: Project, repository: Repository, shown: str) -> str:
    """Return the path from the project's root under which git knows the displayed path `shown`.

    Links to folders are followed, but not a link in the last part, which git stores as a file.
    The file need not exist: it may be in the history.
    """
    meant = meant_name(shown)
    path = Path(meant)
    if "\0" in meant or path.name in ("", ".."):
        found = project.locate(shown).path
    else:
        found = project.locate(shown_name(str(path.parent))).path / path.name
    root = project.root.resolve()
    if found != root and root not in found.parents:
        raise OutsideError(shown, f"outside the repository of the project {root}")
    _refuse_inner_repository(found, root, repository, shown)
    return os.path.relpath(found, root)


def _refuse_inner_repository(path: Path, root: Path, repository: Repository, shown: str) -> None:
    """Raise if the path is in a submodule or in another nested repository."""
    for folder in path.parents:
        if folder in (root, repository.folder.top) or root not in folder.parents:
            return
        if (folder / ".git").exists():
            inner = shown_name(os.path.relpath(folder, root))
            raise GitError(
                f"{same_form(shown)} is in {inner}, which is a repository of its own: a submodule "
                f"or a nested one. Its history is seen in a session on {inner}."
            )
