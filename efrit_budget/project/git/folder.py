"""Find the repository of a folder without running git.

Git would believe a repository's own settings about where its working tree is, and would follow
links and paths in its files to other repositories. So git is given the repository found here.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from efrit_budget.errors import EfritError
from efrit_budget.project.file_cache import FileCache, Sources
from efrit_budget.project.paths import shown_name

POINTER = "gitdir: "
BRANCH = "ref: refs/heads/"
MOST_BYTES = 1024 * 1024
"""The most bytes of a repository's file that is read, such as HEAD or config."""
MOST_LENDERS = 50
NOT_READ = ("hooks", "lfs", "annex", "modules", "worktrees")
"""Folders of a repository for other programs or other working trees."""
FLAT = ("info", "objects", "objects/pack", "reftable")
DEEP = ("objects/info", "refs", "logs")
REMOVE = "git is not asked there. If the person knows how it came there, they can remove it."
NO_FILE = f"no file, and git would wait for it; {REMOVE}"
UNDER_WAY = {
    "rebase-merge": "rebasing",
    "rebase-apply": "rebasing",
    "MERGE_HEAD": "merging",
    "CHERRY_PICK_HEAD": "cherry-picking",
    "REVERT_HEAD": "reverting",
    "BISECT_LOG": "bisecting",
}


class GitError(EfritError):
    """Git cannot do this; the message says what to do.

    `complaint` is git's own message: it is compared with known texts, but never shown, because it
    may quote any file.
    """

    def __init__(self, message: str, *, complaint: str = "") -> None:
        super().__init__(message)
        self.complaint = complaint


@dataclass(frozen=True)
class GitFolder:
    """A repository: its working tree and its folders."""

    top: Path
    """The working tree, the folder that holds `.git`."""
    own: Path
    """The folder with this working tree's own HEAD, index and unfinished merge."""
    shared: Path
    """The folder with the objects and branches that linked working trees share."""
    lenders: tuple[Path, ...] = ()
    """Folders of other repositories that objects are borrowed from."""

    @property
    def is_shallow(self) -> bool:
        """Return whether the clone is shallow."""
        return (self.shared / "shallow").is_file()

    @property
    def branch(self) -> str | None:
        """The branch, or None if HEAD is detached."""
        head = os.fsdecode(_read(self.own / "HEAD")).rstrip()
        return head.removeprefix(BRANCH) if head.startswith(BRANCH) else None

    @property
    def under_way(self) -> str:
        """The unfinished operation, such as "merging", or an empty text."""
        begun = [word for name, word in UNDER_WAY.items() if (self.own / name).exists()]
        return ", ".join(dict.fromkeys(begun))


def git_folder(root: Path) -> GitFolder:
    """Return the repository that contains `root`; raise if none does or git must not read it."""
    home = root.resolve()
    found = _folders.get(home, lambda sources: _find(home, sources))
    if found is None:
        raise GitError(
            f"{shown_name(str(root))} is not in a git repository, so there is no history to look "
            "at. project_files, search_content and read_file work without one."
        )
    return found


_folders: FileCache[Path, GitFolder | None] = FileCache()


def _find(home: Path, sources: Sources) -> GitFolder | None:
    """Return the repository whose working tree is `home` or a folder above, or None."""
    for top in (home, *home.parents):
        entry = sources.add(top / ".git")
        is_pointer = entry.exists() and not entry.is_dir()
        own = _follow(entry, top, sources, POINTER) if is_pointer else _resolve(entry, sources)
        if not os.path.lexists(sources.add(own / "HEAD")):
            continue
        common = sources.add(own / "commondir")
        shared = _follow(common, own, sources) if os.path.lexists(common) else own
        if sources.add(shared / "objects").is_dir():
            found = GitFolder(top, own, shared, _lenders(shared, sources))
            if not _belongs(found, sources):
                raise _elsewhere(found)
            _check_inside(found, sources)
            return found
    return None


def _resolve(path: Path, sources: Sources) -> Path:
    """Return the resolved path; if it contains links, forbid to cache it, as links may change."""
    if any(part.is_symlink() for part in (path, *path.parents)):
        sources.complete = False
    return path.resolve()


def _follow(pointer: Path, base: Path, sources: Sources, prefix: str = "") -> Path:
    """Return the path in a file of git's, behind `prefix`; a relative one begins at `base`."""
    text = _read(sources.add(pointer)).rstrip(b"\r\n")
    if not text.startswith(prefix.encode()) or b"\0" in text or b"\n" in text:
        raise GitError(f"{shown_name(str(pointer))} should hold one path and does not; {REMOVE}")
    return _resolve(base / os.fsdecode(text.removeprefix(prefix.encode())), sources)


def _read(file: Path) -> bytes:
    """Return the content of a small file of git's; raise if it is a pipe, a device or too long."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise GitError(f"{shown_name(str(file))} cannot be read: {error.strerror}") from error
    with open(descriptor, "rb") as opened:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise GitError(f"{shown_name(str(file))} is {NO_FILE}")
        text = opened.read(MOST_BYTES + 1)
    if len(text) > MOST_BYTES:
        raise GitError(f"{shown_name(str(file))} is longer than git's own are; {REMOVE}")
    return text


def _lenders(shared: Path, sources: Sources) -> tuple[Path, ...]:
    """Return the folders that objects are borrowed from, directly or through other folders."""
    found: dict[Path, None] = {}
    waiting = [shared / "objects"]
    while waiting and len(found) <= MOST_LENDERS:
        objects = waiting.pop()
        file = sources.add(objects / "info" / "alternates")
        for line in _read(file).splitlines() if os.path.lexists(file) else ():
            if line and not line.startswith(b"#"):
                lender = _resolve(objects / os.fsdecode(line.replace(b"\0", b"")), sources)
                if lender not in found:
                    found[lender] = None
                    waiting.append(lender)
    return tuple(found)


def _belongs(found: GitFolder, sources: Sources) -> bool:
    """Return whether a repository belongs to this working tree.

    Otherwise, a `.git` file in somebody's project could show the history of another project.
    """
    if found.shared != found.own and found.shared / "worktrees" != found.own.parent:
        return False
    if found.top in found.shared.parents:
        return True
    if found.shared != found.own:
        back, entry = sources.add(found.own / "gitdir"), found.top / ".git"
        return os.path.lexists(back) and _follow(back, found.own, sources) == entry.resolve()
    return _stated_work_tree(found, sources) == found.top


def _stated_work_tree(found: GitFolder, sources: Sources) -> Path | None:
    """Return the path in the setting `core.worktree` of the repository, or None."""
    file = sources.add(found.own / "config")
    for line in os.fsdecode(_read(file)).splitlines() if os.path.lexists(file) else ():
        key, _, value = line.partition("=")
        if key.strip().lower() == "worktree":
            return _resolve(found.own / value.strip().strip('"'), sources)
    return None


def _check_inside(found: GitFolder, sources: Sources) -> None:
    """Raise if a part of the repository is elsewhere, or is a pipe or a device.

    A repository inside its working tree, which may have come with the project, must not borrow
    objects from elsewhere.
    """
    homes = [found.top, found.own, found.shared]
    if found.top in found.shared.parents:
        for lender in found.lenders:
            if found.top not in lender.parents:
                raise GitError(
                    f"{shown_name(str(found.top))} borrows objects from {shown_name(str(lender))}, "
                    "outside the project, so its history is not shown. If it is meant, the person "
                    "can copy them: git repack -a -d && rm .git/objects/info/alternates"
                )
    for entry in _entries(found, sources):
        if entry.is_symlink():
            sources.complete = False
            _check_link(entry, [*homes, *found.lenders])
        elif not (entry.is_file() or entry.is_dir()):
            _check_kind(entry)


def _entries(found: GitFolder, sources: Sources) -> Iterator[os.DirEntry[str]]:
    """Yield the files and folders that git reads in a repository, except single objects."""
    for kept in dict.fromkeys((found.own, found.shared)):
        flat = {kept, *(kept / name for name in FLAT)}
        waiting = [*flat, *(kept / name for name in DEEP)]
        while waiting:
            folder = waiting.pop()
            try:
                with os.scandir(sources.add(folder)) as listed:
                    entries = list(listed)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                shown = shown_name(str(folder))
                raise GitError(f"{shown} cannot be read: {error.strerror}") from error
            for entry in entries:
                if folder != kept or entry.name not in NOT_READ:
                    yield entry
                if folder not in flat and entry.is_dir(follow_symlinks=False):
                    waiting.append(Path(entry.path))


def _check_link(entry: os.DirEntry[str], homes: Sequence[Path]) -> None:
    """Raise if a link leads out of the folders `homes`, or to a pipe or a device."""
    target = Path(os.path.realpath(entry.path))
    if not any(target == home or home in target.parents for home in homes):
        raise GitError(
            f"{shown_name(entry.path)} is a link to {shown_name(str(target))}, outside; {REMOVE}"
        )
    _check_kind(entry)


def _check_kind(entry: os.DirEntry[str]) -> None:
    """Raise if an entry is a pipe or a device, or a link to one."""
    with suppress(OSError):  # a link to nothing
        mode = entry.stat().st_mode
        if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
            raise GitError(f"{shown_name(entry.path)} is {NO_FILE}")


def _elsewhere(found: GitFolder) -> GitError:
    top, kept = (shown_name(str(path)) for path in (found.top, found.shared))
    return GitError(
        f"{top}/.git leads to the repository {kept}, outside the project, which does not name "
        f"{top} as a working tree of its own; so its history is not shown. If it is meant, the "
        f"person can run: git --git-dir={kept} config core.worktree {top}"
    )
