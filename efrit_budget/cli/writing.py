"""Replace files without ever leaving half of one."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final

from efrit_budget.errors import EfritError

NEW_FILE_MODE: Final = 0o666


@contextmanager
def replacing(path: Path) -> Iterator[IO[str]]:
    """Yield a new file that replaces `path` at the end of the block; after an error `path` stays.

    A link stays a link: its target is replaced. A device or a pipe is written to directly.
    """
    target = path.resolve()
    if target.exists() and not target.is_file():
        with target.open("w", encoding="utf-8") as stream:
            yield stream
        return
    descriptor, name = _open_beside(target)
    try:
        with open(descriptor, "w", encoding="utf-8") as stream:
            yield stream
            stream.flush()
            os.fchmod(descriptor, _mode(target))
            os.fsync(descriptor)
        Path(name).replace(target)
    except BaseException:
        with suppress(FileNotFoundError):
            Path(name).unlink()
        raise


def _open_beside(target: Path) -> tuple[int, str]:
    """Open a temporary file beside the target; name the target in errors."""
    import tempfile

    try:
        return tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except OSError as error:
        folder = f"the folder {target.parent}"
        advice = f"{folder} must be one that can be written to"
        if isinstance(error, FileNotFoundError):
            advice = f"make {folder} first"
        raise EfritError(f"{target} was not written: {error.strerror}; {advice}") from error


def _mode(target: Path) -> int:
    """Return the permissions of the file to replace, or those of a new file."""
    try:
        return target.stat().st_mode & 0o7777
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return NEW_FILE_MODE & ~mask
