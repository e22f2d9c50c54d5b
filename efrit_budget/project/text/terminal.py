"""Convert terminal output to plain text, and keep its beginning and end."""

import codecs
import re
from collections import deque
from collections.abc import Iterator
from itertools import groupby

HEAD_BYTES = TAIL_BYTES = 8 * 1024 * 1024
"""The bytes kept of an output's beginning and of its end."""
NEWEST_BYTES = 4 * 1024
"""The number of last bytes of a running command's output that are shown."""

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
RETURN, BACKSPACE = "␍", "␈"
"""The signs that stand between a text and the text that was written over it."""
FIGURES = re.compile(r"[\d\s.,:;%/=<>#|\\()\[\]*█▏▎▍▌▋▊▉░▒▓━╸╺-]+|[KMGT]i?B")
"""The characters that change in a progress line."""
LEAST_ALIKE = 3
"""Of at least this many similar versions of a progress line, the middle ones are counted."""
SEQUENCES = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours, movements
    "|(?:\x1b\\]|\x9d)[^\x07\x1b\x9c-\x9f\n]*(?:\x07|\x1b\\\\|\x9c)"  # titles, links
    "|(?:\x1b[PX^_]|[\x90\x98\x9e\x9f])[^\x1b\x90\x98\x9c-\x9f\n]*(?:\x1b\\\\|\x9c)"  # for devices
    "|\x1b[ -/]*[0-~]?"
)
"""Terminal control sequences; of a title or link that does not end, only the start matches."""
OVERSTRUCK = re.compile("_\b(?=[^\n\b])|([^\n\b])\b(?=\\1|_)")
"""Characters that are printed over by the next one for bold or underline, with the backspace."""
BACKSPACES = re.compile("\b+")
UNFINISHED = re.compile(
    "(?:(?:\x1b\\[|\x9b)[0-?]*[ -/]*|(?:\x1b[]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*\x1b?"
    "|\x1b[ -/]*)\\Z"
)
"""The beginning of a control sequence that the end of a text cuts."""


class Kept:
    """The beginning and end of an output; the bytes between are counted and dropped."""

    def __init__(self) -> None:
        self.size = 0
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._newest = b""

    def add(self, data: bytes) -> None:
        """Append data to the output."""
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
        """The number of bytes dropped between the beginning and the end."""
        return self.size - len(self._head) - self._tail_size

    def newest(self) -> str:
        """Return the last lines of the output so far as plain text; any thread may call this."""
        size, newest = self.size, self._newest
        if size > len(newest):
            newest = newest.partition(b"\n")[2] or newest.lstrip(bytes(range(0x80, 0xC0)))
        text = codecs.getincrementaldecoder("utf-8")("replace").decode(newest)
        lines = _plain(UNFINISHED.sub("", text)).split("\n")
        return "\n".join(line.rpartition(RETURN)[2] for line in lines)

    def parts(self) -> tuple[str, str]:
        """Return the kept beginning and end as plain text.

        If nothing was dropped, the first text is the whole output and the second is empty.
        """
        tail = b"".join(self._tail)
        if not self.dropped:
            return plain(bytes(self._head) + tail), ""
        return plain(bytes(self._head)), plain(tail)


def plain(data: bytes) -> str:
    """Return output without terminal control sequences.

    An overwritten text stays before the text that replaced it. Of many versions of a line that
    differ only in figures, those between the first and the last are replaced by their number.
    """
    return _plain(data.decode("utf-8", "replace"))


def _plain(text: str) -> str:
    if CONTROL.search(text) is None:
        return text
    text = SEQUENCES.sub("", text)
    if "\b" in text:
        text = BACKSPACES.sub(BACKSPACE, OVERSTRUCK.sub("", text))
    if "\r" in text:
        text = "\n".join(map(_written_over, text.split("\n")))
    return CONTROL.sub("", text)


def _written_over(line: str) -> str:
    """Return a line with a RETURN sign between the versions that carriage returns separate."""
    if "\r" not in line:
        return line
    written = filter(str.strip, line.split("\r"))
    groups = groupby(written, lambda text: FIGURES.sub("", text))
    return RETURN.join(part for _, alike in groups for part in _few(list(alike)))


def _few(alike: list[str]) -> Iterator[str]:
    if len(alike) < LEAST_ALIKE:
        yield from alike
        return
    yield from (alike[0], f"… {len(alike) - 2:,} like it …", alike[-1])
