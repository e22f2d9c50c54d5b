"""Tests of output as plain text."""

from __future__ import annotations

import pytest

from efrit_budget.project.text.terminal import HEAD_BYTES, TAIL_BYTES, Kept, plain


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (b"plain\n\ttext\n", "plain\n\ttext\n"),
        (b"\x1b[1;31mred\x1b[0m \x1b[38;5;200mpink\x1b[K\n", "red pink\n"),
        (b"\x1b]0;title\x07text \x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\\n", "text link\n"),
        (b"\x1bPdevice\x1b\\x\x1b(By\x1b=z\x1b", "xyz"),
        (b" 10%\r 50%\r100%\nnext\r\n", " 10%␍… 1 like it …␍100%\nnext\n"),
        (b"Got 1\rGot 2\rGot 8\rGot 9\r\n", "Got 1␍… 2 like it …␍Got 9\n"),
        (b"rm -rf /\r        \recho hi\n", "rm -rf /␍echo hi\n"),
        (b"rm -rf /\b\b\b\b\b\b\b\becho\n", "rm -rf /␈echo\n"),
        (b"all\r", "all"),
        (b"N\bNA\bAM\bME\bE _\bu_\bn", "NAME un"),
        (b"wait |\b/\b-\bdone\n", "wait |␈/␈-␈done\n"),
        (b"a\0b\x07c\x7f", "abc"),
        ("é\u009b31mü".encode(), "éü"),
        (b"caf\xe9 \xff", "caf\ufffd \ufffd"),
        (b"unfinished \x1b]0;title\nkept", "unfinished 0;title\nkept"),
    ],
)
def test_a_text_is_read_as_a_terminal_would_show_it_without_colours(
    written: bytes, read: str
) -> None:
    assert plain(written) == read


@pytest.mark.parametrize("sign", [b"\r", b"\b", b"\x1b", b"\x1b[", b"\x1b]", b"\x1bP", b"a\r"])
def test_a_million_of_one_sign_are_read_in_no_time(sign: bytes) -> None:
    assert len(plain(sign * 1_000_000 + b"\nend")) < 1_000_000
    assert plain(b"x" * 3_000_000 + sign + b"\nend").endswith("\nend")


def test_of_a_huge_output_the_beginning_and_the_end_are_kept() -> None:
    kept = Kept()
    kept.add(b"begin\n")
    for _ in range(40):
        kept.add(b"x" * 999_999 + b"\n")
    kept.add(b"end\n")
    begin, end = kept.parts()
    assert begin.startswith("begin\n")
    assert end.endswith("end\n")
    assert kept.size == 40_000_010
    assert kept.dropped > 0
    assert TAIL_BYTES <= kept.size - kept.dropped - HEAD_BYTES < TAIL_BYTES + 1_000_001


def test_an_output_that_is_not_huge_is_kept_whole() -> None:
    kept = Kept()
    for _ in range(16):
        kept.add(b"x" * (1024 * 1024 - 1) + b"\n")
    assert (kept.dropped, len(kept.parts()[0])) == (0, HEAD_BYTES + TAIL_BYTES)


NEWEST: list[tuple[tuple[bytes, ...], str]] = [
    ((b"a\n", b"b"), "a\nb"),
    ((b"x" * 5000 + b"\n", b"y" * 4000 + b"\nz"), "y" * 4000 + "\nz"),
    ((b"z" * 5000,), "z" * 4096),
    (("é".encode() * 3000,), "é" * 2048),
    (("é".encode() * 3000 + b"a",), "é" * 2047 + "a"),
    (("a\né".encode()[:-1],), "a\n"),
    ((b"a\x1b[31mb\x1b[3",), "ab"),
    ((b"a\x1b[31mb\x1b]0;titl",), "ab"),
    ((b"a\x1b",), "a"),
    ((b"10%\r20%",), "20%"),
]


@pytest.mark.parametrize(("parts", "shown"), NEWEST)
def test_the_newest_of_an_output_is_shown_without_halves(
    parts: tuple[bytes, ...], shown: str
) -> None:
    kept = Kept()
    for part in parts:
        kept.add(part)
    assert kept.newest() == shown
