"""Mark which sidecar process owns a row, and detect whether it is alive."""

import fcntl
import os
import secrets
from pathlib import Path


class Owner:
    """The mark of this process: a locked file, which the system unlocks when the process dies."""

    def __init__(self, database: Path) -> None:
        self._folder = database.with_name(database.name + ".owners")
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.name = secrets.token_hex(8)
        self._descriptor = self._lock_own()
        for file in self._folder.glob("[!.]*"):
            if file.name != self.name and not _is_locked(file):  # the mark of a dead process
                file.unlink(missing_ok=True)

    def alive(self, name: str) -> bool:
        """Return whether the process whose mark has this name is running."""
        return name == self.name or _is_locked(self._folder / name)

    def close(self) -> None:
        """Remove the mark's file and unlock it."""
        (self._folder / self.name).unlink(missing_ok=True)
        os.close(self._descriptor)

    def _lock_own(self) -> int:
        """Lock the file under a temporary name, so that no other process sees it unlocked."""
        unfinished = self._folder / f".{self.name}"
        descriptor = os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        unfinished.rename(self._folder / self.name)
        return descriptor


def _is_locked(file: Path) -> bool:
    """Return whether a process has locked the file; False if there is no file."""
    try:
        descriptor = os.open(file, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(descriptor)
