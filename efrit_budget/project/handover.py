"""Read texts that the client leaves in files of an agreed folder."""

import os
import stat
from contextlib import suppress
from pathlib import Path

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
OTHERS = 0o077
MOST_BYTES = 64 * 2**20
"""The most bytes of a text in a file; a message may have as many by default."""


class HandoverError(Exception):
    """The file that the client left cannot be read; the message says why."""


def take_text(folder: Path, name: str) -> str:
    """Return the text of file `name` in `folder` and delete the file.

    Raise unless folder and file belong to the person and are closed to other users. The file is
    opened relative to the folder, and links are refused, so that no file elsewhere is read.
    """
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise HandoverError("it should be the bare name of a file")
    try:
        inside = os.open(folder, FOLDER)
    except OSError as error:
        raise HandoverError(f"the folder agreed on: {error.strerror}") from error
    try:
        _check(os.fstat(inside), "the folder agreed on")
        return _taken(inside, name).decode("utf-8", "replace")
    finally:
        os.close(inside)


def _taken(folder: int, name: str) -> bytes:
    try:
        descriptor = os.open(name, FILE, dir_fd=folder)
    except OSError as error:
        raise HandoverError(f"the file: {error.strerror}") from error
    try:
        found = os.fstat(descriptor)
        _check(found, "the file")
        if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
            raise HandoverError("the file: it is not a regular file with one name")
        if found.st_size > MOST_BYTES:
            raise HandoverError(f"the file: it has more than {MOST_BYTES:,} bytes")
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder)
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(MOST_BYTES)
    finally:
        os.close(descriptor)


def _check(found: os.stat_result, what: str) -> None:
    if found.st_uid != os.geteuid() or found.st_mode & OTHERS:
        raise HandoverError(f"{what}: it is not the person's own and private")
