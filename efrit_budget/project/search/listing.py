"""List the files of a folder with git or rg."""

import os
import time
from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

from efrit_budget.cancellation import Cancellation
from efrit_budget.project.git.folder import GitError, git_folder
from efrit_budget.project.git.repository import Repository, find
from efrit_budget.project.search.walk import Walk, in_repository

MOST_BYTES = 256 * 1024 * 1024
MOST_FOLDERS = 50_000
RACY_NS = 2_000_000_000

Tree = dict[str, list[str]]
"""Maps each folder, which ends in a slash (the root: empty), to the names of its files."""


@dataclass(frozen=True)
class Listing:
    """The files of a folder, by relative path."""

    tracked: Tree = field(default_factory=dict)
    untracked: Tree = field(default_factory=dict)
    """The files that git does not track; all files if git did not list them."""
    deleted: list[str] = field(default_factory=list)
    """The paths that git tracks, but that do not exist."""
    by_git: bool = True
    problem: str = ""
    """The reason why git could not list a repository, or empty."""


def files_of(folder: Path, rg: Path, cancellation: Cancellation) -> Listing:
    """Return the files of a folder that are not ignored."""
    if not in_repository(folder):
        return _by_rg(folder, rg, cancellation)
    try:
        return _by_git(folder, cancellation)
    except GitError as error:
        return replace(_by_rg(folder, rg, cancellation), problem=error.message)


def grouped(names: Iterable[str]) -> Tree:
    """Return paths by folder; a path that ends in a slash is listed in its parent folder."""
    tree: defaultdict[str, list[str]] = defaultdict(list)
    last: str | None = None
    for name in names:
        cut = name.rfind("/") + 1
        folder = name[:cut]
        if folder != last:  # neighbours mostly share a folder
            add = tree[folder].append
            last = folder
        add(name[cut:])
    for folder in [folder for folder, bases in tree.items() if "" in bases]:
        _give_up(tree, folder)
    return dict(tree)


def _give_up(tree: defaultdict[str, list[str]], folder: str) -> None:
    """Move a folder that is listed itself to the names of its parent folder."""
    tree[folder].remove("")
    if not tree[folder]:
        del tree[folder]
    cut = folder.rfind("/", 0, -1) + 1
    tree[folder[:cut]].append(folder[cut:])


def _by_rg(folder: Path, rg: Path, cancellation: Cancellation) -> Listing:
    names = Walk(rg, folder, ".", cancellation).names()
    return Listing(untracked=grouped(names), by_git=False)


def _by_git(folder: Path, cancellation: Cancellation) -> Listing:
    """Return tracked and untracked files, which git lists at the same time.

    Git reads no file's content for this, so no filter has to be turned off.
    """
    repository = Repository(find(), folder, git_folder(folder), (), cancellation)
    with ThreadPoolExecutor(1) as pool:
        others = pool.submit(_listed, repository, "--others", "--exclude-standard")
        tracked = grouped(_listed(repository, "--cached", "--deduplicate"))
        deleted = _take_out_deleted(tracked, folder)
        untracked = others.result()
    deleted += _take_out_replaced(tracked, untracked)
    return Listing(tracked, grouped(untracked), sorted(deleted))


def _listed(repository: Repository, *which: str) -> list[str]:
    found = repository.run("ls-files", "-z", *which, most_bytes=MOST_BYTES)
    if found.cut:
        raise GitError("git lists more files than can be shown")
    return os.fsdecode(found.stdout).split("\0")[:-1]


def _take_out_deleted(tracked: Tree, folder: Path) -> list[str]:
    """Remove from a tree the files that do not exist, and return their paths."""
    deleted: list[str] = []
    top = f"{folder}/"
    for inner, names in list(tracked.items()):
        missing = _missing(top + inner, names)
        if missing:
            deleted += _take_out(tracked, inner, missing)
    return deleted


_complete: dict[str, tuple[int, int]] = {}
"""By folder without a missing file: its modification time, and the hash of its names."""


def _missing(folder: str, names: list[str]) -> set[str]:
    """Return those of the names that a folder does not contain.

    An empty answer is cached, unless the folder changed so recently that it may change again
    within the same timestamp.
    """
    try:
        modified = os.stat(folder).st_mtime_ns  # noqa: PTH116  faster than Path.stat
        state = (modified, hash(tuple(names)))
        if _complete.get(folder) == state:
            return set()
        missing = set(names).difference(os.listdir(folder))  # noqa: PTH208  faster than iterdir
    except (FileNotFoundError, NotADirectoryError):
        return set(names)
    except OSError:
        return set()
    if not missing and time.time_ns() - modified > RACY_NS:
        if len(_complete) >= MOST_FOLDERS:
            _complete.clear()
        _complete[folder] = state
    return missing


def _take_out_replaced(tracked: Tree, untracked: Iterable[str]) -> list[str]:
    """Remove from a tree the files whose folder is a link now, and return their paths."""
    deleted: list[str] = []
    for link in {f"{name}/" for name in untracked} & tracked.keys():
        deleted += _take_out(tracked, link, set(tracked[link]))
    return deleted


def _take_out(tree: Tree, folder: str, names: set[str]) -> list[str]:
    kept = [name for name in tree[folder] if name not in names]
    if kept:
        tree[folder] = kept
    else:
        del tree[folder]
    return [folder + name for name in names]
