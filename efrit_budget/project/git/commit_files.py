"""Read files and folders of a commit."""

import os
import re
from dataclasses import dataclass

from efrit_budget.project.git.repository import MOST_BYTES, Repository

IN_COMMIT = re.compile(r"((?:[^:{]|\{[^}]*\})+):(.*)", re.DOTALL)
FOLDER, FILE, COMMIT = "tree", "blob", "commit"
LINK_MODE = "120000"


@dataclass(frozen=True)
class PastFile:
    """An entry of a folder in a commit."""

    name: str
    mode: str
    kind: str
    hash: str
    size: int


def split_revision(revision: str) -> tuple[str, str] | None:
    """Return commit and path of a revision like `HEAD~3:a.py`, or None if it has no path."""
    found = IN_COMMIT.fullmatch(revision)
    return (found[1], found[2]) if found is not None else None


def past_entry(repository: Repository, commit: str, name: str) -> PastFile | None:
    """Return the entry of a path in a commit, or None if the commit has no such path."""
    found = _list(repository, commit, name)
    return found[0] if found else None


def past_folder(repository: Repository, commit: str, name: str) -> list[PastFile]:
    """Return the entries of a folder in a commit."""
    return _list(repository, commit, f"{name}/" if name else "")


def _list(repository: Repository, commit: str, name: str) -> list[PastFile]:
    paths = (name,) if name else ()
    printed = repository.run("ls-tree", "-z", "-l", commit, paths=paths).stdout
    return [_entry(record) for record in printed.split(b"\0")[:-1]]


def _entry(record: bytes) -> PastFile:
    facts, _, name = record.partition(b"\t")
    mode, kind, digest, size = facts.decode().split()
    return PastFile(os.fsdecode(name), mode, kind, digest, int(size) if size.isdigit() else 0)


def past_content(repository: Repository, file: PastFile) -> bytes:
    """Return the first MOST_BYTES bytes of a file in a commit."""
    return repository.run("cat-file", "blob", file.hash, most_bytes=MOST_BYTES).stdout
