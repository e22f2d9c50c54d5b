"""Diffs contain the whole change, and git applies them as they are."""

from __future__ import annotations

import random
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from efrit_budget.changes.diffs import (
    BLOCK,
    MOST_BYTES,
    Version,
    as_buffer,
    counts,
    differing_lines,
    unified,
)

LINES = st.lists(
    st.sampled_from(["", "a", "b", "c", "  indented", "größe", "a\r", "日本", "x\x0cy", "\\"])
)
TEXTS = st.builds(
    lambda lines, last: "\n".join([*lines, last]).encode(), LINES, st.sampled_from(["", "end"])
)


def applied(folder: Path, pairs: Sequence[tuple[bytes | None, bytes | None]]) -> None:
    """Apply the diff from old to new contents with git, and compare the result."""
    names = [f"file-{number}" for number in range(len(pairs))]
    for name, (old, _) in zip(names, pairs, strict=True):
        if old is not None:
            (folder / name).write_bytes(old)
    patch = "".join(
        unified(Version(name, old), Version(name, new))
        for name, (old, new) in zip(names, pairs, strict=True)
    )
    if patch:
        command = ["git", "apply", "--whitespace=nowarn", "-"]
        subprocess.run(command, cwd=folder, input=patch.encode(), check=True)
    for name, (_, new) in zip(names, pairs, strict=True):
        file = folder / name
        assert (file.read_bytes() if file.exists() else None) == new


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=20))
def test_git_makes_the_new_text_of_the_old_one_by_any_diff(
    pairs: list[tuple[bytes, bytes]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        applied(Path(folder), pairs)


@given(st.lists(TEXTS.filter(len), min_size=1, max_size=20))
def test_git_makes_and_removes_files_by_their_diffs(texts: list[bytes]) -> None:
    pairs = [(None, text) if number % 2 else (text, None) for number, text in enumerate(texts)]
    with tempfile.TemporaryDirectory() as folder:
        applied(Path(folder), pairs)


def test_large_texts_that_differ_in_many_places_make_a_small_diff(tmp_path: Path) -> None:
    chance = random.Random(7)
    lines = [f"line {number} {chance.random()}" for number in range(30_000)]
    changed = list(lines)
    for number in chance.sample(range(len(lines)), 300):
        changed[number] = "changed" if number % 3 else f"changed\ninserted {number}"
    old, new = "\n".join(lines).encode(), "\n".join(changed).encode()
    assert counts(old, new) == (300 + sum("\n" in line for line in changed), 300)
    applied(tmp_path, [(old, new), (new, old)])


def test_a_difference_at_any_place_of_large_contents_is_found(tmp_path: Path) -> None:
    lines = [b"%d of a content larger than a block" % number for number in range(4_000)]
    whole = b"\n".join(lines) + b"\n"
    assert len(whole) > 2 * BLOCK
    places = [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, len(whole) - 2, len(whole) - 1]
    cut = [whole[:at] + b"#" + whole[at + 1 :] for at in places]
    longer = [whole[:at] + b"inserted\n" + whole[at:] for at in places]
    applied(tmp_path, [(whole, other) for other in [*cut, *longer]])
    assert {counts(whole, other) for other in cut[:-1]} == {(1, 1)}


@given(st.lists(st.integers(0, 8)), st.lists(st.integers(0, 8)))
def test_lines_outside_of_what_differs_are_the_same(old: list[int], new: list[int]) -> None:
    """The texts have so many lines that anchors are looked for too."""
    old_lines = [b"%d" % number for number in old for _ in range(40)] + [b"once"]
    new_lines = [b"%d" % number for number in new for _ in range(40)] + [b"once", b"more"]
    at, made = 0, []
    for begin, end, new_begin, new_end in differing_lines(old_lines, new_lines):
        made += old_lines[at:begin] + new_lines[new_begin:new_end]
        at = end
    assert made + old_lines[at:] == new_lines


def test_what_is_binary_is_said_in_words() -> None:
    diff = unified(Version("a.png", b"\0" * 1234), Version("a.png", b"\0"))
    assert diff == "a.png: binary, 1,234 bytes before, 1 byte after\n"
    assert (
        unified(Version("a", None), Version("a", b"\0"))
        == "a: binary, no file before, 1 byte after\n"
    )
    assert counts(b"\0", b"a\n") == (0, 0)


def test_what_is_too_much_to_show_is_said_in_words() -> None:
    old, new = b"a\n" * MOST_BYTES, b"b\n" * 3
    assert unified(Version("a", old), Version("a", new)) == (
        f"a: {MOST_BYTES:,} lines became 3 lines, too many to show\n"
    )
    assert counts(old, new) == (3, MOST_BYTES)


def test_the_same_content_makes_no_diff() -> None:
    assert unified(Version("a", b"a"), Version("a", b"a")) == ""
    assert unified(Version("a", None), Version("a", None)) == ""
    assert counts(None, None) == (0, 0)


def test_bytes_that_are_no_text_are_shown_by_a_sign() -> None:
    diff = unified(Version("a", b"caf\xe9\n"), Version("a", b"caf\xe8\n"))
    assert "-caf\ufffd\n+caf\ufffd\n" in diff


def test_a_rename_is_told_as_git_tells_it(tmp_path: Path) -> None:
    assert unified(Version("a", b"a\n"), Version("b", b"a\n")) == (
        "diff --git a/a b/b\nrename from a\nrename to b\n"
    )
    (tmp_path / "a").write_bytes(b"a\n")
    patch = unified(Version("a", b"a\n"), Version('"new\\nline"', b"A\n"))
    subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=patch.encode(), check=True)
    assert (tmp_path / "new\nline").read_bytes() == b"A\n"
    assert not (tmp_path / "a").exists()


def test_a_file_is_compared_with_a_buffer_as_emacs_shows_it() -> None:
    assert as_buffer(b"a\r\nb\r\n") == b"a\nb\n"
    assert as_buffer(b"a\r\nb\n") == b"a\r\nb\n"
    assert as_buffer(b"\xef\xbb\xbfa\n") == b"a\n"
    assert as_buffer("größe\n".encode("latin-1")) == "größe\n".encode()
    assert as_buffer("größe\n".encode("utf-16")) == "größe\n".encode()
    assert as_buffer(None) is None
