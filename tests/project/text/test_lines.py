"""Tests of the index of lines: it gives the same lines as counting one by one."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from efrit_budget.cancellation import Cancellation
from efrit_budget.errors import CancelledError
from efrit_budget.project.text.coding import Coding, Read
from efrit_budget.project.text.lines import (
    BLOCK,
    MOST_INDEXES,
    Identity,
    Indexes,
    LineIndex,
    start_of_last,
)

CODINGS = [Coding("utf-8"), Coding("latin-1"), Coding("utf-16-le", 2), Coding("utf-16-be", 2)]


def _check() -> None:
    """Do nothing: these reads are never cancelled."""


def _reader(data: bytes) -> Read:
    return lambda offset, count: data[offset : offset + count]


def _text(seed: int, size: int) -> str:
    """Return lines of very different lengths; some characters look like newlines in UTF-16."""
    chooser = random.Random(seed)
    parts: list[str] = []
    length = 0
    while length < size:
        parts.append("x\u00a0"[: chooser.randrange(3)] * chooser.choice((0, 3, 40, 5000)))
        length += len(parts[-1]) + 1
    return "\n".join(parts)


@pytest.mark.parametrize("coding", CODINGS, ids=lambda coding: coding.codec)
def test_every_line_is_found_where_it_begins(coding: Coding) -> None:
    text = _text(1, 3 * BLOCK)
    mark = b"\0" * coding.bom
    data = mark + text.encode(coding.codec)
    index = LineIndex(coding, len(data))
    lines = text.split("\n")
    begins = [coding.bom]
    for line in lines[:-1]:
        begins.append(begins[-1] + len((line + "\n").encode(coding.codec)))
    wanted = [*range(1, 50), *random.Random(2).sample(range(1, len(lines)), 200), len(lines)]
    for line in wanted:
        assert index.start_of(line, _reader(data), _check) == begins[line - 1]
    assert index.start_of(len(lines) + 1, _reader(data), _check) is None
    assert index.newlines(_reader(data), _check) == len(lines) - 1


@pytest.mark.parametrize("coding", CODINGS, ids=lambda coding: coding.codec)
@pytest.mark.parametrize("ending", ["", "\n"])
def test_the_last_lines_are_found_from_the_end(coding: Coding, ending: str) -> None:
    text = _text(3, 2 * BLOCK) + "end" + ending
    data = b"\0" * coding.bom + text.encode(coding.codec)
    lines = text.removesuffix("\n").split("\n")
    for count in (1, 2, 7, len(lines) // 2, len(lines) - 1, len(lines), len(lines) + 5):
        begin = start_of_last(count, len(data), _reader(data), coding, _check)
        last = "\n".join(lines[-count:]) + ending
        assert coding.decoded(data[begin:]) == last


def test_signs_that_hold_a_newlines_bytes_are_none() -> None:
    coding = Coding("utf-16-le")
    data = "\u0a00\u000a\u0a0a\u000a\u0a00x".encode(coding.codec)
    index = LineIndex(coding, len(data))
    assert index.newlines(_reader(data), _check) == 2
    assert index.start_of(3, _reader(data), _check) == 8


def test_only_what_is_asked_for_is_read() -> None:
    data = b"line\n" * BLOCK
    seen: list[int] = []

    def read(offset: int, count: int) -> bytes:
        seen.append(offset)
        return data[offset : offset + count]

    index = LineIndex(Coding("utf-8"), len(data))
    assert index.start_of(10, read, _check) == 45
    assert set(seen) == {0}
    assert not index.is_whole


def test_a_file_that_shrinks_while_it_is_read_is_read_to_its_end() -> None:
    for coding in CODINGS:
        index = LineIndex(coding, 5 * BLOCK)
        data = "a\nb\n".encode(coding.codec)
        assert index.newlines(_reader(data), _check) == 2
        assert index.start_of(3, _reader(b""), _check) is not None


def test_counting_stops_when_it_is_cancelled() -> None:
    cancellation = Cancellation()
    cancellation.cancel()
    index = LineIndex(Coding("utf-8"), 10 * BLOCK)
    with pytest.raises(CancelledError):
        index.newlines(_reader(b""), cancellation.check)


def test_an_index_is_kept_while_its_file_is_the_same(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("a\n", encoding="utf-8")
    os.utime(file, (0, 0))
    indexes, coding = Indexes(), Coding("utf-8")
    first = indexes.of(Identity.of(file.stat()), coding)
    assert indexes.of(Identity.of(file.stat()), coding) is first
    os.utime(file, (1, 1))
    second = indexes.of(Identity.of(file.stat()), coding)
    assert second is not first
    assert indexes.of(Identity.of(file.stat()), Coding("latin-1")) is not second


def test_a_file_changed_a_moment_ago_may_change_unseen_and_is_counted_anew(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("a\n", encoding="utf-8")
    ahead = file.stat().st_mtime + 3600
    os.utime(file, (ahead, ahead))
    indexes, coding = Indexes(), Coding("utf-8")
    state = Identity.of(file.stat())
    assert indexes.of(state, coding) is not indexes.of(state, coding)


def test_only_the_indexes_of_the_files_read_last_are_kept() -> None:
    indexes, coding = Indexes(), Coding("utf-8")
    states = [Identity(1, inode, 10, 0) for inode in range(MOST_INDEXES + 1)]
    kept = [indexes.of(state, coding) for state in states]
    assert indexes.of(states[-1], coding) is kept[-1]
    assert indexes.of(states[1], coding) is kept[1]
    assert indexes.of(states[0], coding) is not kept[0]
