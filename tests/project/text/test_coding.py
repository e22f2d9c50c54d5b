"""Tests of encodings: a file's encoding is recognized, and no byte is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from efrit_budget.project.text.coding import Coding, guess_coding


def _taken_for(data: bytes) -> str | None:
    coding = guess_coding(lambda offset, count: data[offset : offset + count], len(data))
    return None if coding is None else coding.codec


@pytest.mark.parametrize(
    ("data", "codec"),
    [
        (b"", "utf-8"),
        (b"plain\n", "utf-8"),
        ("é".encode() * 100_000, "utf-8"),
        ("漢".encode() * 100_000, "utf-8"),
        (b"x" + "\U0001f600".encode() * 100_000, "utf-8"),
        ("é".encode() * 50 + b"\xff", "utf-8"),
        ("é".encode("latin-1") * 50, "latin-1"),
        (b"a" * 500_000 + "naïve café".encode("latin-1") * 10_000, "latin-1"),
        (b"\x1b[31mred\x1b[0m\n" * 10, "utf-8"),
        (b"text\0", None),
        (b"\xff\xfe\0\0a\0\0\0", None),
        (b"a\0" * 5, None),
        (b"\x01\0\x02\0\x03\0" * 50, None),
        (bytes(range(256)) * 30, None),
    ],
)
def test_a_file_is_taken_for_what_it_looks_like(data: bytes, codec: str | None) -> None:
    assert _taken_for(data) == codec


@given(st.binary(max_size=200), st.sampled_from(["utf-8", "latin-1", "utf-16-le", "utf-16-be"]))
def test_whatever_the_bytes_they_come_back(data: bytes, codec: str) -> None:
    coding = Coding(codec)
    data = data[: len(data) - len(data) % coding.width]
    assert coding.encoded(coding.decoded(data)) == data


@given(st.text(max_size=20), st.sampled_from(["utf-8", "utf-16-le", "utf-16-be"]))
def test_a_cut_never_falls_into_a_character(text: str, codec: str) -> None:
    coding = Coding(codec)
    data = coding.encoded(text)
    for end in range(len(data) + 1):
        assert text.startswith(coding.decoded(coding.whole(data[:end])))
