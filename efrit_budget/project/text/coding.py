"""Guess the encoding of a file from a sample of its bytes."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

Read = Callable[[int, int], bytes]
"""A function that takes an offset and a count and returns these bytes; fewer at the end."""

HEAD_BYTES = 64 * 1024
BINARY_BYTES = 8000
"""A NUL in so many first bytes makes a file binary, as in git, unless it is UTF-16."""
SAMPLES, SAMPLE_BYTES = 4, 16 * 1024
BOMS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
UTF_32 = b"\xff\xfe\0\0"
CONTROLS = bytes(code for code in range(32) if code not in b"\t\n\r\f\b\x1b")
MOST_CONTROLS = 0.1
"""Bytes with a larger share of control characters are binary."""
LEAST_ZEROS = 0.3
"""Bytes look like UTF-16 if at least this share of the even, or of the odd, ones is zero."""
LEAST_UNITS = 8
CONTINUATION = re.compile(rb"[\x80-\xbf]{0,3}")
UNFINISHED = re.compile(rb"(?:[\xc2-\xdf]|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xf4][\x80-\xbf]{0,2})\Z")
LONE = re.compile("[\ud800-\udfff]")
REPLACEMENT = "\ufffd"


@dataclass(frozen=True)
class Coding:
    """An encoding (`codec`), and the length in bytes of the byte order mark (`bom`)."""

    codec: str
    bom: int = 0

    @cached_property
    def newline(self) -> bytes:
        """The bytes that end a line."""
        return "\n".encode(self.codec)

    @property
    def width(self) -> int:
        """The number of bytes of a code unit: two in UTF-16, else one."""
        return len(self.newline)

    @property
    def label(self) -> str:
        """The encoding for people, empty for plain UTF-8."""
        name = "" if self.codec == "utf-8" else self.codec
        return ", ".join(filter(None, (name, "BOM" if self.bom else "")))

    @property
    def _errors(self) -> str:
        """The error handler that preserves invalid bytes."""
        return "surrogateescape" if self.width == 1 else "surrogatepass"

    def decoded(self, data: bytes) -> str:
        """Decode data of whole code units so that `encoded` restores the bytes."""
        return data.decode(self.codec, self._errors)

    def encoded(self, text: str) -> bytes:
        """Encode text that `decoded` returned."""
        return text.encode(self.codec, self._errors)

    def whole(self, data: bytes) -> bytes:
        """Return the data without a unit or character cut at its end."""
        data = data[: len(data) - len(data) % self.width]
        if self.codec == "utf-8":
            return data[:-4] + UNFINISHED.sub(b"", data[-4:])
        if self.codec.startswith("utf-16") and data:
            high = data[-1] if self.codec == "utf-16-le" else data[-2]
            return data[:-2] if 0xD8 <= high <= 0xDB else data
        return data


def mark_invalid(text: str) -> str:
    """Return decoded text with a replacement character for each invalid byte."""
    return LONE.sub(REPLACEMENT, text)


def guess_coding(read: Read, size: int) -> Coding | None:
    """Return the encoding of a file, or None if it is binary."""
    head = read(0, HEAD_BYTES)
    for mark, codec in BOMS:
        if head.startswith(mark) and not head.startswith(UTF_32):
            return Coding(codec, len(mark))
    if b"\0" in head[:BINARY_BYTES]:
        return _without_mark(head)
    if _controls(head[:BINARY_BYTES]) > MOST_CONTROLS:
        return None
    return Coding("utf-8" if _is_utf_8(_samples(head, read, size)) else "latin-1")


def _controls(data: bytes) -> float:
    return (len(data) - len(data.translate(None, CONTROLS))) / max(1, len(data))


def _without_mark(head: bytes) -> Coding | None:
    """Return the UTF-16 coding of a head with NULs but no mark, or None if it looks binary."""
    even, odd = head[0::2].count(0), head[1::2].count(0)
    units = len(head) // 2
    if units < LEAST_UNITS or min(even, odd) > 0 or max(even, odd) < units * LEAST_ZEROS:
        return None
    coding = Coding("utf-16-le" if odd else "utf-16-be")
    text = coding.decoded(coding.whole(head))
    is_text = not LONE.search(text) and _controls(text.encode()) <= MOST_CONTROLS
    return coding if is_text else None


def _samples(head: bytes, read: Read, size: int) -> Iterator[bytes]:
    """Yield the head of a file, and blocks spread over the rest of the file."""
    yield head
    rest = size - len(head) - SAMPLE_BYTES
    if rest > 0:
        for number in range(1, SAMPLES + 1):
            yield read(len(head) + rest * number // SAMPLES, SAMPLE_BYTES)


def _is_utf_8(samples: Iterator[bytes]) -> bool:
    """Return whether valid UTF-8 beyond ASCII is at least as frequent as invalid bytes."""
    fitting = wrong = 0
    for number, sample in enumerate(samples):
        inner = CONTINUATION.sub(b"", sample, count=1) if number else sample
        if inner.isascii():
            continue
        text = Coding("utf-8").decoded(Coding("utf-8").whole(inner))
        lone = len(LONE.findall(text))
        wrong += lone
        fitting += len(text) - lone - len(text.encode("ascii", "ignore"))
    return fitting >= wrong
