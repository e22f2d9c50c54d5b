"""Tests of `read_file`, through a real sidecar: encodings, line ends, and binary files."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import pytest

from tests.connection import Connection
from tests.tools.reading import Read, reader


@pytest.fixture(name="read")
def make_reader(sidecar: Connection, session: str) -> Read:
    """A function that calls the tool."""
    return reader(sidecar, session)


# Encodings


ENCODED = [
    ("Größe\nž\n".encode(), "(2 lines, 11 bytes)", ["Größe", "ž"]),
    ("a\nž".encode("utf-8-sig"), "(2 lines, 7 bytes, BOM)", ["a", "ž"]),
    ("a\nž\n".encode("utf-16"), "utf-16-le, BOM)", ["a", "ž"]),
    (b"\xfe\xff" + "a\n漢\U0001f600\n".encode("utf-16-be"), "utf-16-be, BOM)", ["a", "漢😀"]),
    ("some text\nand more\n".encode("utf-16-le"), "utf-16-le)", ["some text", "and more"]),
    ("some text\nand more\n".encode("utf-16-be"), "utf-16-be)", ["some text", "and more"]),
    ("Größe\nGrün\n".encode("latin-1"), "latin-1)", ["Größe", "Grün"]),
    (b"one\r\ntwo\r\n", "(2 lines, 10 bytes, CRLF)", ["one", "two"]),
    (b"one\r\ntwo\nthree\n", "CRLF in part)", ["one␍", "two", "three"]),
    (b"one\rtwo\n", "(1 line, 8 bytes)", ["one␍two"]),
    (
        b"\x0cpage\x0b\x85\xe2\x80\xa8\xc3\xa9 z\xc3\xa9\n",
        "bytes)",
        ["␌page␋�␤é zé"],
    ),
]


def test_encodings_and_line_ends_are_told_where_they_are_special(read: Read, project: Path) -> None:
    for data, told, lines in ENCODED:
        (project / "a").write_bytes(data)
        envelope = read(path="a")
        assert envelope["data"]["lines"] == lines
        assert told in envelope["text"].split("\n")[0]


def test_bytes_that_are_no_character_are_shown_by_a_sign_and_said(
    read: Read, project: Path
) -> None:
    (project / "a").write_bytes("éé ß".encode() + b"\xff\xfe ok\n")
    envelope = read(path="a")
    assert envelope["data"]["lines"] == ["éé ß�� ok"]
    assert "� is bytes that are no character." in envelope["text"]
    (project / "b").write_bytes(b"x\n" * 5000 + b"hole\0\0\r\r\n")
    envelope = read(path="b", tail=2)
    assert envelope["data"]["lines"] == ["x", "hole␀␀␍␍"]
    assert "␍ is a carriage return, ␀ is a NUL." in envelope["text"]


def test_a_last_line_without_a_newline_is_told(read: Read, project: Path) -> None:
    (project / "a").write_text("one\ntwo", encoding="utf-8")
    assert "The last line has no newline." in read(path="a")["text"]
    assert "The last line has no newline." in read(path="a", tail=1)["text"]
    assert "newline" not in read(path="a", end_line=1)["text"]
    (project / "a").write_text("one\ntwo\n", encoding="utf-8")
    assert "newline" not in read(path="a")["text"]


def test_no_line_of_a_file_passes_for_a_line_of_the_answer(read: Read, project: Path) -> None:
    (project / "a").write_bytes("x\n📏 ~1 tokens\rcontinuation_token r1:0-0000\n".encode())
    text = read(path="a")["text"]
    assert text.split("\n")[2].startswith("2\t📏")
    assert "\r" not in text


# What is no text


def _png(width: int, height: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        checked = kind + data
        return struct.pack(">I", len(data)) + checked + struct.pack(">I", zlib.crc32(checked))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IEND", b"")


JPEG = (
    *(b"\xff\xd8\xff\xe1", struct.pack(">H", 60_002), b"\0" * 60_000),
    *(b"\xff\xe2", struct.pack(">H", 9_002), b"\0" * 9_000),
    *(b"\xff\xc2", struct.pack(">HBHHB", 17, 8, 480, 640, 3), b"\0" * 9),
)
POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 123456\n"


DESCRIBED = [
    (_png(640, 480), "PNG image, 640x480, 45 bytes, binary: not shown; read_image"),
    (b"GIF89a" + struct.pack("<HH", 3, 70_00) + b"\0", "GIF image, 3x7000, 11 bytes"),
    (b"".join(JPEG), "JPEG image, 640x480, 69,0"),
    (b"RIFF\0\0\0\0WEBPVP8X" + b"\0" * 8 + b"\x7f\x02\0\xdf\x01\0", "WebP image, 640x480"),
    (b"\x89PNG\r\n\x1a\n", "PNG image, 8 bytes"),
    (b"\xff\xd8\xff", "JPEG image, 3 bytes"),
    (b"%PDF-1.7\nabc", "PDF document, 12 bytes, binary: not shown"),
    (b"\x7fELF\x02", "ELF program or library, 5 bytes"),
    (b"GIF89a is a text\n", "(1 line, 17 bytes)"),
    (b"MZ is a text\n", "(1 line, 13 bytes)"),
    (b"text\0", ": 5 bytes, binary: not shown"),
    (bytes(range(1, 32)) * 20, ": 620 bytes, binary: not shown"),
    (POINTER.encode(), ": a Git LFS pointer to 123,456 bytes; the content is not here"),
]


def test_what_is_no_text_is_described_and_not_shown(read: Read, project: Path) -> None:
    for data, told in DESCRIBED:
        (project / "a").write_bytes(data)
        envelope = read(path="a")
        assert envelope["status"] == "success"
        assert told in envelope["text"]
        assert envelope["tokens"] < 100
