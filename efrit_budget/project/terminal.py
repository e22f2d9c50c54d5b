"""What a program writes for a terminal, as plain text, and as much of it as is kept."""

from __future__ import annotations

import codecs
import re
from collections import deque

HEAD_BYTES = TAIL_BYTES = 8 * 1024 * 1024
"""What is kept of an output from its beginning and from its end."""
NEWEST_BYTES = 4 * 1024
"""What is shown of an output while it grows."""

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
SEQUENCES = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours, movements
    "|(?:\x1b\\]|\x9d)[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\\\|\x9c)?"  # titles, links
    "|(?:\x1b[PX^_]|[\x90\x98\x9e\x9f])[^\x1b\x9c\n]*(?:\x1b\\\\|\x9c)?"  # strings to devices
    "|\x1b[ -/]*[0-~]?"
)
OVERSTRUCK = re.compile("[^\n\b]\b")
UNFINISHED = re.compile(
    "(?:(?:\x1b\\[|\x9b)[0-?]*[ -/]*|(?:\x1b[]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*\x1b?"
    "|\x1b[ -/]*)\\Z"
)
"""The beginning of a sequence whose rest is still to come."""
MOST_BACKSPACES = 16
"""How many in a row are followed."""


class Kept:
    """The beginning and the end of an output; what lies between is counted and dropped."""

    def __init__(self) -> None:
        self.size = 0
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._newest = b""

    def add(self, data: bytes) -> None:
        """Take what was written."""
        self.size += len(data)
        self._newest = (self._newest + data[-NEWEST_BYTES:])[-NEWEST_BYTES:]
        room = HEAD_BYTES - len(self._head)
        self._head += data[:room]
        if len(data) > room:
            self._tail.append(data[room:])
            self._tail_size += len(data) - room
        while self._tail and self._tail_size - len(self._tail[0]) >= TAIL_BYTES:
            self._tail_size -= len(self._tail.popleft())

    @property
    def dropped(self) -> int:
        """How many bytes are kept no more."""
        return self.size - len(self._head) - self._tail_size

    def newest(self) -> str:
        """The end of what was written so far, in whole lines; any thread may ask for it."""
        size, newest = self.size, self._newest
        if size > len(newest):
            newest = newest.partition(b"\n")[2] or newest.lstrip(bytes(range(0x80, 0xC0)))
        text = codecs.getincrementaldecoder("utf-8")("replace").decode(newest)
        return _plain(UNFINISHED.sub("", text))

    def text(self) -> str:
        """What is kept, as it would stand on a terminal, without colours."""
        tail = b"".join(self._tail)
        if not self.dropped:
            return plain(bytes(self._head) + tail)
        left_out = f"\n… {self.dropped:,} bytes of output were not kept …\n"
        return plain(bytes(self._head)) + left_out + plain(tail)


def plain(data: bytes) -> str:
    """The text of an output: what was overwritten is left out, and so is what only commands."""
    return _plain(data.decode("utf-8", "replace"))


def _plain(text: str) -> str:
    if CONTROL.search(text) is None:
        return text
    text = SEQUENCES.sub("", text)
    for _ in range(MOST_BACKSPACES if "\b" in text else 0):
        text = OVERSTRUCK.sub("", text)
    if "\r" in text:
        text = "\n".join(map(_last_written, text.split("\n")))
    return CONTROL.sub("", text)


def _last_written(line: str) -> str:
    """What a line that was written over several times shows at last."""
    return line.rstrip("\r").rpartition("\r")[2]
