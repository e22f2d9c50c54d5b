"""Recognize binary files by their first bytes."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from efrit_budget.project.text.coding import Read

LFS = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\n(?:ext-[^\n]*\n)*"
    rb"oid sha256:[0-9a-f]{64}\nsize ([0-9]{1,18})\n"
)
LFS_BYTES = 1024
"""A Git LFS pointer file is smaller than this many bytes, as in git-lfs."""
PDF = b"%PDF-"
MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "PNG image"),
    (b"\xff\xd8\xff", "JPEG image"),
    (b"GIF87a", "GIF image"),
    (b"GIF89a", "GIF image"),
    (b"II*\0", "TIFF image"),
    (b"MM\0*", "TIFF image"),
    (PDF, "PDF document"),
    (b"\x7fELF", "ELF program or library"),
    (b"\xcf\xfa\xed\xfe", "Mach-O program or library"),
    (b"MZ", "Windows program"),
    (b"PK\x03\x04", "zip archive"),
    (b"PK\x05\x06", "zip archive"),
    (b"\x1f\x8b", "gzip data"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ\0", "xz data"),
    (b"\x28\xb5\x2f\xfd", "zstd data"),
    (b"7z\xbc\xaf\x27\x1c", "7z archive"),
    (b"SQLite format 3\0", "SQLite database"),
    (b"\0asm", "WebAssembly module"),
    (b"\xca\xfe\xba\xbe", "Java class or Mach-O"),
    (b"wOFF", "WOFF font"),
    (b"wOF2", "WOFF font"),
    (b"\0\x01\0\0", "TrueType font"),
    (b"OTTO", "OpenType font"),
    (b"OggS", "Ogg media"),
    (b"fLaC", "FLAC audio"),
    (b"ID3", "MP3 audio"),
    (b"!<arch>\n", "static library"),
    (b";ELC", "compiled Emacs Lisp"),
)
FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""The second bytes of the JPEG markers whose segments hold the image's width and height."""
MOST_SEGMENTS = 100


@dataclass(frozen=True)
class Binary:
    """The recognized kind of a binary file, with width and height of some images."""

    kind: str
    dimensions: tuple[int, int] | None = None

    @property
    def is_image(self) -> bool:
        """Return whether the file is an image."""
        return self.kind.endswith("image")


def lfs_size(head: bytes, size: int) -> int | None:
    """Return the bytes that a Git LFS pointer says its file has, or None if it is no pointer."""
    found = LFS.match(head) if size < LFS_BYTES else None
    return int(found[1]) if found else None


def recognize(head: bytes, read: Read) -> Binary | None:
    """Return the kind of a binary file, or None if its first bytes are of no known kind."""
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return Binary("WebP image", _webp(head))
    for magic, kind in MAGIC:
        is_no_word = magic == PDF or not magic.isalnum()  # no text begins with it
        if head.startswith(magic) and (is_no_word or b"\0" in head):
            measure = MEASURES.get(kind)
            return Binary(kind, measure(head, read) if measure else None)
    return None


def jpeg_segments(read: Read) -> Iterator[bytes]:
    """Yield the first ten bytes of each of a JPEG's segments; the last may have fewer."""
    offset = 2
    for _ in range(MOST_SEGMENTS):
        segment = read(offset, 10)
        if len(segment) < 5 or segment[0] != 0xFF:
            return
        yield segment
        offset += 2 + int.from_bytes(segment[2:4], "big")


def _jpeg(_: bytes, read: Read) -> tuple[int, int] | None:
    """Return width and height of a JPEG from its segments, or None if they do not state them."""
    frames = (segment for segment in jpeg_segments(read) if segment[1] in FRAMES)
    frame = next(frames, b"")
    return _pair(frame[7:9], frame[5:7], "big") if len(frame) >= 9 else None


def _webp(head: bytes) -> tuple[int, int] | None:
    kind = head[12:16]
    if kind == b"VP8X" and len(head) >= 30:
        width, height = (int.from_bytes(head[at : at + 3], "little") for at in (24, 27))
        return width + 1, height + 1
    if kind == b"VP8L" and len(head) >= 25:
        bits = int.from_bytes(head[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 " and len(head) >= 30:
        width, height = (int.from_bytes(head[at : at + 2], "little") for at in (26, 28))
        return width & 0x3FFF, height & 0x3FFF
    return None


def _pair(width: bytes, height: bytes, order: Literal["big", "little"]) -> tuple[int, int] | None:
    if not width or not height:
        return None
    return int.from_bytes(width, order), int.from_bytes(height, order)


MEASURES: dict[str, Callable[[bytes, Read], tuple[int, int] | None]] = {
    "PNG image": lambda head, _: _pair(head[16:20], head[20:24], "big"),
    "GIF image": lambda head, _: _pair(head[6:8], head[8:10], "little"),
    "JPEG image": _jpeg,
}
