"""Read and write whole files on disk, never through a link."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from efrit_budget.changes.change import ChangeError
from efrit_budget.project.project import BENEATH, FOLDER, Located, Project, open_beneath
from efrit_budget.project.stamps import stamp_from

MOST_MEGABYTES = 100
MOST_BYTES = MOST_MEGABYTES * 1_000_000
PERMISSIONS = 0o7777
PRIVATE_MODE = 0o600
"""The permissions of a restored file whose permissions are not known."""
RIGHTS = ("system.posix_acl_access", "security.selinux")
"""The extended attributes that a file keeps when it is replaced."""
SCRATCH = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True)
class DiskFile:
    """A file on disk, as it was read."""

    data: bytes
    facts: os.stat_result

    @property
    def stamp(self) -> str:
        """The stamp of the file."""
        return stamp_from(self.facts)

    @property
    def mode(self) -> int:
        """The permissions of the file."""
        return self.facts.st_mode & PERMISSIONS


def read(located: Located) -> DiskFile | None:
    """Return the whole file, or None if it does not exist."""
    with _explaining(located, "read"):
        try:
            descriptor = open_beneath(located)
        except FileNotFoundError:
            return None
        try:
            return _read_open(descriptor, located)
        finally:
            os.close(descriptor)


def _read_open(descriptor: int, located: Located) -> DiskFile:
    facts = os.fstat(descriptor)
    if not stat.S_ISREG(facts.st_mode):
        raise ChangeError(f"{located.shown} is no longer a file", data={"path": located.shown})
    data = b""
    if facts.st_size <= MOST_BYTES:
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            data = file.read(MOST_BYTES + 1)
    if max(facts.st_size, len(data)) > MOST_BYTES:
        raise ChangeError(
            f"{located.shown} has more than {MOST_MEGABYTES} MB; larger files are not stored, so "
            "that a change could not be undone; change it with a command",
            data={"path": located.shown},
        )
    return DiskFile(data, facts)


@contextmanager
def _explaining(located: Located, what: str) -> Iterator[None]:
    """Turn an `OSError` of the block into an error: the file cannot be `what`, such as read."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        raise ChangeError(
            f"{located.shown} cannot be {what}: {reason}", data={"path": located.shown}
        ) from error


def put(
    located: Located, data: bytes, mode: int | None, found: DiskFile | None, scratch: str
) -> None:
    """Replace the file `found` by `data`, by renaming `scratch`; raise if the file has changed.

    A `mode` of None gives a new file the permissions that new files have here.
    """
    with _explaining(located, "written"), _parent(located, made=True) as (folder, name):
        try:
            _write(folder, (scratch, name), data, mode, found)
            _require_unchanged(folder, name, found, located)
            os.rename(scratch, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(OSError):
                os.unlink(scratch, dir_fd=folder)
            raise
        _sync_folder(folder)


def _write(
    folder: int, names: tuple[str, str], data: bytes, mode: int | None, found: DiskFile | None
) -> None:
    """Write the first of the names, which is to replace the second, the file `found`."""
    scratch, name = names
    with suppress(FileNotFoundError):
        os.unlink(scratch, dir_fd=folder)
    descriptor = os.open(scratch, SCRATCH, 0o666 if mode is None else 0o600, dir_fd=folder)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        if found is not None:
            _copy_owner(descriptor, found.facts)
        if mode is not None:
            os.fchmod(descriptor, mode)
        if found is not None:
            _copy_rights(folder, name, descriptor)
        os.fsync(descriptor)


def _copy_owner(descriptor: int, facts: os.stat_result) -> None:
    """Set owner and group of an open file to those in `facts`, as far as the system allows."""
    own = os.fstat(descriptor)
    if (own.st_uid, own.st_gid) != (facts.st_uid, facts.st_gid):
        with suppress(PermissionError):
            os.fchown(descriptor, facts.st_uid, facts.st_gid)


def _copy_rights(folder: int, name: str, descriptor: int) -> None:
    """Give an open file the access list and the label of another, where the system has them."""
    if not hasattr(os, "getxattr"):
        return
    with suppress(OSError):
        other = os.open(name, os.O_RDONLY | os.O_NONBLOCK | BENEATH, dir_fd=folder)
        try:
            for attribute in RIGHTS:
                with suppress(OSError):
                    os.setxattr(descriptor, attribute, os.getxattr(other, attribute))
        finally:
            os.close(other)


def remove(located: Located, found: DiskFile) -> None:
    """Remove the file; raise if it has changed since it was read as `found`."""
    with _explaining(located, "removed"), _parent(located) as (folder, name):
        _require_unchanged(folder, name, found, located)
        os.unlink(name, dir_fd=folder)
        _sync_folder(folder)


def move(source: Located, target: Located, mode: int, found: DiskFile) -> None:
    """Rename a file and set its `mode`; raise if it has changed or `target` exists."""
    with (
        _explaining(source, f"renamed to {target.shown}"),
        _parent(source) as (folder, name),
        _parent(target, made=True) as (other, new),
    ):
        _require_unchanged(folder, name, found, source)
        _require_unchanged(other, new, None, target)
        os.rename(name, new, src_dir_fd=folder, dst_dir_fd=other)
        if found.mode != mode:
            os.chmod(new, mode, dir_fd=other)
        _sync_folder(other)
        _sync_folder(folder)


def remove_scratch(located: Located, scratch: str) -> None:
    """Remove a file `scratch` beside another, if there is one and it can be removed."""
    with suppress(OSError), _parent(located) as (folder, _):
        os.unlink(scratch, dir_fd=folder)


def set_mode(located: Located, mode: int) -> None:
    """Set the permissions of a file."""
    with _explaining(located, "given its permissions"), _parent(located) as (folder, name):
        os.chmod(name, mode, dir_fd=folder)


def remove_empty_folder(located: Located) -> None:
    """Remove the folder if it is empty; do nothing if it cannot be removed."""
    with suppress(OSError), _parent(located) as (folder, name):
        os.rmdir(name, dir_fd=folder)


def missing_folders(project: Project, located: Located) -> tuple[str, ...]:
    """Return the folders that creating the file will create, innermost first."""
    missing = []
    for folder in located.path.parents:
        if folder == located.root or os.path.lexists(folder):
            break
        missing.append(project.locate(str(folder)).shown)
    return tuple(missing)


def _require_unchanged(folder: int, name: str, found: DiskFile | None, located: Located) -> None:
    """Raise if the file has changed since it was read as `found`; None stands for no file."""
    try:
        facts = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        same = found is None
    else:
        same = found is not None and _identity(facts) == _identity(found.facts)
    if not same:
        raise ChangeError(
            f"{located.shown} was changed this very moment, so nothing was done; try again",
            data={"path": located.shown},
        )


def _identity(facts: os.stat_result) -> tuple[int, ...]:
    return facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns


def _sync_folder(folder: int) -> None:
    """Write a folder itself to the disk, where its file system can."""
    with suppress(OSError):
        descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def _parent(located: Located, *, made: bool = False) -> Iterator[tuple[int, str]]:
    """Open a file's folder, created if `made`; yield its descriptor and the file's name."""
    parts = located.path.relative_to(located.root).parts
    folder = os.open(located.root, FOLDER & ~os.O_NOFOLLOW)
    try:
        for part in parts[:-1]:
            if made:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=folder)
            inner = os.open(part, FOLDER, dir_fd=folder)
            os.close(folder)
            folder = inner
        yield folder, parts[-1]
    finally:
        os.close(folder)


def restore(located: Located, data: bytes, mode: int, now: DiskFile | None, scratch: str) -> bool:
    """Give a file this content and these permissions; return whether they differed."""
    if now is None or now.data != data:
        put(located, data, mode, now, scratch)
        return True
    if now.mode != mode:
        set_mode(located, mode)
    return now.mode != mode


def mode_to_restore(now: DiskFile | None, left: int | None, wanted: int | None) -> int:
    """Return the permissions that are `wanted`, or the file's if they are not as they were left."""
    if now is not None and left is not None and now.mode != left:
        return now.mode
    return PRIVATE_MODE if wanted is None else wanted
