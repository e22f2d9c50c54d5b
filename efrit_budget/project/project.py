"""The project of a session: its root, extra folders and unsaved buffers."""

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from efrit_budget.project.paths import OutsideError, inside, meant_name, shown_name
from efrit_budget.project.secrets import Secrets
from efrit_budget.project.specs import Specs

BENEATH = os.O_NOFOLLOW | os.O_CLOEXEC
FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | BENEATH
FILE = os.O_RDONLY | os.O_NONBLOCK | BENEATH


@dataclass(frozen=True)
class Located:
    """A path of the project with links resolved."""

    path: Path
    root: Path
    """The allowed folder that contains the path."""
    name: str
    """The resolved path, from the project's root; absolute if it is outside of the root."""
    given: str
    """The path before links were resolved; also from the root, or absolute."""

    @property
    def shown(self) -> str:
        """The displayed form of the path."""
        return shown_name(self.name)


@dataclass(frozen=True)
class Project:
    """A root, extra folders that the person allows, and unsaved buffers."""

    root: Path
    extra_roots: tuple[Path, ...] = ()
    secrets: Secrets = field(default_factory=Secrets)
    buffers: Mapping[Path, str] = field(default_factory=dict)
    """The texts of unsaved buffers, by resolved path."""
    specs: Specs = field(default_factory=Specs)
    """The places of the project's specification."""
    stale: frozenset[Path] = frozenset()
    """The resolved paths of unsaved buffers whose files changed since Emacs read them."""

    def locate(self, shown: str) -> Located:
        """Return the place of the displayed path `shown`; raise if it is in no allowed folder."""
        home, outside = self.root.resolve(), None
        for root in (self.root, *self.extra_roots):
            try:
                found = inside(root, shown, home)
            except OutsideError as error:
                outside = outside or error
                continue
            given = Path(os.path.normpath(home / meant_name(shown)))
            name, given_name = (
                os.path.relpath(path, home) if path.is_relative_to(home) else str(path)
                for path in (found, given)
            )
            return Located(found, root.resolve(), name, given_name)
        raise outside or OutsideError(shown, "outside the project")

    def is_secret(self, located: Located) -> bool:
        """Return whether a file is likely to hold secrets, by its resolved or its given name."""
        return self.secrets.holds(located.name) or self.secrets.holds(located.given)

    def buffer(self, located: Located) -> str | None:
        """Return the text of a file's unsaved buffer, or None if it has no such buffer."""
        return self.buffers.get(located.path)

    def is_stale(self, located: Located) -> bool:
        """Return whether a file with an unsaved buffer changed since Emacs read it."""
        return located.path in self.stale

    def stat(self, located: Located) -> os.stat_result:
        """Return the file's status; no link is followed on the way to it."""
        with _parent(located) as (folder, name):
            return os.stat(name, dir_fd=folder, follow_symlinks=False)


def open_beneath(located: Located) -> int:
    """Open a file folder by folder from its allowed folder, over no link; return a descriptor."""
    with _parent(located) as (folder, name):
        return _step(folder, name, FILE, located)


@contextmanager
def _parent(located: Located) -> Iterator[tuple[int, str]]:
    """Open the folder of a file; yield the folder's descriptor and the file's name in it."""
    parts = located.path.relative_to(located.root).parts
    folder = os.open(located.root, FOLDER & ~os.O_NOFOLLOW)
    try:
        for part in parts[:-1]:
            inner = _step(folder, part, FOLDER, located)
            os.close(folder)
            folder = inner
        yield folder, parts[-1] if parts else "."
    finally:
        os.close(folder)


def _step(folder: int, name: str, flags: int, located: Located) -> int:
    try:
        return os.open(name, flags, dir_fd=folder)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENOTDIR):
            raise
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISLNK(found.st_mode):
            raise OutsideError(located.shown, "it was replaced while it was opened") from error
        raise
