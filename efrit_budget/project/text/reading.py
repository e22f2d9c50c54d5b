"""Read a file or its unsaved buffer in parts."""

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass

from efrit_budget.errors import EfritError, Json
from efrit_budget.project.contents import Binary, lfs_size, recognize
from efrit_budget.project.project import Located, Project, open_beneath
from efrit_budget.project.text.coding import Coding, Read, guess_coding
from efrit_budget.project.text.lines import Check, Identity, Indexes, LineIndex, start_of_last

CHEAP_BYTES = 4 * 1024 * 1024
"""The lines of a file of at most this many bytes are always counted."""
LOOKED_AT = 64 * 1024
OTHERS = {
    stat.S_IFDIR: "a folder; project_files lists it",
    stat.S_IFIFO: "a pipe, and only files are read; file_info describes it",
    stat.S_IFSOCK: "a socket, and only files are read; file_info describes it",
    stat.S_IFCHR: "a device, and only files are read; file_info describes it",
    stat.S_IFBLK: "a device, and only files are read; file_info describes it",
    stat.S_IFLNK: "a link that was changed meanwhile; call again",
}

_indexes = Indexes()


class NoFileError(EfritError):
    """The path cannot be read as a file."""


@dataclass(frozen=True)
class Text:
    """The text of a file or an unsaved buffer, which is read in parts."""

    located: Located
    size: int
    coding: Coding
    state: list[Json]
    """The values that identify the state of the file or buffer: size, time or hash."""
    modified_ns: int | None
    """The file's modification time; None for an unsaved buffer."""
    read: Read
    check: Check
    index: LineIndex
    stale: bool = False
    """Whether the text is a buffer's, and its file changed on disk since Emacs read it."""

    @property
    def is_buffer(self) -> bool:
        """Return whether the text is that of an unsaved buffer."""
        return self.modified_ns is None

    @property
    def end(self) -> int:
        """The byte offset behind the last whole code unit."""
        return self.size - self.size % self.coding.width

    @property
    def begin(self) -> int:
        """The byte offset of the first character, behind the byte order mark."""
        return self.coding.bom

    def known_lines(self) -> int | None:
        """Return the number of lines, or None if it is not known yet and costly to count."""
        cheap = self.size <= CHEAP_BYTES or self.index.is_whole
        return self.count_lines() if cheap else None

    def count_lines(self) -> int:
        """Return the number of lines; the last may lack its newline."""
        return self.index.newlines(self.read, self.check) + (not self.ends_with_newline())

    def ends_with_newline(self) -> bool:
        """Return whether the last line ends with a newline."""
        if self.end <= self.begin:
            return True
        width = self.coding.width
        return self.read(self.end - width, width) == self.coding.newline

    def start_of(self, line: int) -> int | None:
        """Return the byte offset of a line, or None if there is no such line."""
        offset = self.index.start_of(line, self.read, self.check)
        return None if offset is None or offset >= self.end else offset

    def start_of_last(self, lines: int, end: int) -> int:
        """Return the byte offset at which the last `lines` lines before the offset `end` begin."""
        return start_of_last(lines, end, self.read, self.coding, self.check)

    def part(self, start: int, end: int) -> str:
        """Return the text between two byte offsets, without a character that `end` cuts."""
        data = self.read(start, max(0, min(end, self.end) - start))
        return self.coding.decoded(self.coding.whole(data) if end < self.end else data)


@dataclass(frozen=True)
class Pointer:
    """A Git LFS pointer, with the size in bytes of the file that it stands for."""

    size: int


@dataclass(frozen=True)
class Opened:
    """The content at a path: a text, or a description of something else."""

    located: Located
    size: int
    content: Text | Binary | Pointer


@contextmanager
def opened(project: Project, located: Located, check: Check) -> Iterator[Opened]:
    """Yield the content at a path, of the unsaved buffer if there is one; raise if no file."""
    buffer = project.buffer(located)
    if buffer is not None:
        yield _buffer(located, buffer, project.is_stale(located), check)
        return
    _refuse_others(located, project.stat(located))
    descriptor = open_beneath(located)
    try:
        found = os.fstat(descriptor)
        _refuse_others(located, found)
        yield _file(located, found, lambda at, count: os.pread(descriptor, count, at), check)
    finally:
        os.close(descriptor)


def _refuse_others(located: Located, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        kind = OTHERS.get(stat.S_IFMT(found.st_mode), "no file")
        raise NoFileError(f"{located.shown} is {kind}")


def _buffer(located: Located, text: str, stale: bool, check: Check) -> Opened:
    data = text.encode()
    digest = hashlib.blake2b(data, digest_size=8).hexdigest()
    coding = Coding("utf-8")

    def read(offset: int, count: int) -> bytes:
        return data[offset : offset + count]

    state: list[Json] = ["buffer", len(data), digest]
    index = LineIndex(coding, len(data))
    content = Text(located, len(data), coding, state, None, read, check, index, stale)
    return Opened(located, len(data), content)


def _file(located: Located, found: os.stat_result, read: Read, check: Check) -> Opened:
    size = found.st_size
    head = read(0, LOOKED_AT)
    pointed = lfs_size(head, size)
    if pointed is not None:
        return Opened(located, size, Pointer(pointed))
    known = recognize(head, read)
    coding = None if known else guess_coding(read, size)
    if coding is None:
        return Opened(located, size, known or Binary("binary"))
    identity = Identity.of(found)
    state: list[Json] = ["file", *astuple(identity)]
    index = _indexes.of(identity, coding)
    text = Text(located, size, coding, state, found.st_mtime_ns, read, check, index)
    return Opened(located, size, text)
