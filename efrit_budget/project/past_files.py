"""Files and folders as they were in a commit."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from efrit_budget.project.git import MOST_BYTES, Repository

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
    """The commit and the path of `HEAD~3:a.py`; None for a revision without a path."""
    found = IN_COMMIT.fullmatch(revision)
    return (found[1], found[2]) if found is not None else None


def past_entry(repository: Repository, commit: str, name: str) -> PastFile | None:
    """What a name from the root on was in a commit; None where it was nothing."""
    found = _listed(repository, commit, name)
    return found[0] if found else None


def past_folder(repository: Repository, commit: str, name: str) -> list[PastFile]:
    """What a folder held in a commit; the root has no name."""
    return _listed(repository, commit, f"{name}/" if name else "")


def _listed(repository: Repository, commit: str, name: str) -> list[PastFile]:
    paths = (name,) if name else ()
    printed = repository.run("ls-tree", "-z", "-l", commit, paths=paths).stdout
    return [_entry(record) for record in printed.split(b"\0")[:-1]]


def _entry(record: bytes) -> PastFile:
    facts, _, name = record.partition(b"\t")
    mode, kind, digest, size = facts.decode().split()
    return PastFile(os.fsdecode(name), mode, kind, digest, int(size) if size.isdigit() else 0)


def past_content(repository: Repository, file: PastFile) -> bytes:
    """What a file held, up to the most that is taken."""
    return repository.run("cat-file", "blob", file.hash, most_bytes=MOST_BYTES).stdout
