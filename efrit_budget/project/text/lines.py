"""Find lines of a file without keeping all of them."""

from __future__ import annotations

import os
import threading
import time
from array import array
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from efrit_budget.project.text.coding import Coding, Read

BLOCK = 256 * 1024
"""Newlines are counted in blocks of this many bytes."""
SMALL = 1024
THREADS, MOST_BLOCKS = 3, 64
MOST_INDEXES = 16
RACY_NS = 100_000_000
"""Nanoseconds after a change during which a file may change again with the same timestamp."""

Check = Callable[[], object]


@dataclass(frozen=True)
class Identity:
    """Identifies a file and its state: after a change, size or time differ."""

    device: int
    inode: int
    size: int
    modified_ns: int

    @classmethod
    def of(cls, found: os.stat_result) -> Identity:
        """Return the identity of a file from the status that the file system reports."""
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


class LineIndex:
    """The number of newlines before each block of a file that was counted so far.

    Several threads may count at the same time; of two counts of a block the first is kept.
    """

    def __init__(self, coding: Coding, size: int) -> None:
        self._coding = coding
        self._size = size - size % coding.width
        self._blocks = -(-self._size // BLOCK)
        self._before = array("Q", [0])
        self._lock = threading.Lock()

    @property
    def is_whole(self) -> bool:
        """Return whether all blocks of the file were counted."""
        return len(self._before) > self._blocks

    def newlines(self, read: Read, check: Check) -> int:
        """Return the number of newlines in the file."""
        self._reach(None, read, check)
        return self._before[-1]

    def start_of(self, line: int, read: Read, check: Check) -> int | None:
        """Return the byte offset of a line, or None if there are not enough newlines."""
        if line <= 1:
            return self._coding.bom
        wanted = line - 1
        self._reach(wanted, read, check)
        if self._before[-1] < wanted:
            return None
        block = bisect_left(self._before, wanted) - 1
        data = read(block * BLOCK, BLOCK)
        return block * BLOCK + _end_of(data, wanted - self._before[block], self._coding)

    def _reach(self, wanted: int | None, read: Read, check: Check) -> None:
        """Count blocks, more and more at a time, until `wanted` newlines or all are counted."""
        blocks = 1
        with ThreadPoolExecutor(THREADS) as pool:
            while not self.is_whole and (wanted is None or self._before[-1] < wanted):
                check()
                first = len(self._before) - 1
                self._count(range(first, min(first + blocks, self._blocks)), read, pool)
                blocks = min(2 * blocks, MOST_BLOCKS)

    def _count(self, blocks: range, read: Read, pool: ThreadPoolExecutor) -> None:
        """Count the newlines of several blocks; one thread reads while another counts."""

        def count_part(part: range) -> list[int]:
            return [count(read(block * BLOCK, BLOCK), self._coding) for block in part]

        parts = [blocks[at::THREADS] for at in range(THREADS)]
        found = list((map if len(blocks) == 1 else pool.map)(count_part, parts))
        with self._lock:
            for at, block in enumerate(blocks):
                if len(self._before) == block + 1:
                    self._before.append(self._before[-1] + found[at % THREADS][at // THREADS])


def count(data: bytes, coding: Coding) -> int:
    """Return the number of newlines in the whole code units of `data`."""
    if coding.width == 1:
        return data.count(b"\n")
    return coding.decoded(data[: len(data) - len(data) % coding.width]).count("\n")


def _end_of(data: bytes, number: int, coding: Coding) -> int:
    """Return the offset behind newline `number` of `data`, counted from 1."""
    low, high = 0, len(data)
    while high - low > SMALL:
        middle = (low + high) // 2
        middle -= middle % coding.width
        inner = count(data[low:middle], coding)
        if inner >= number:
            high = middle
        else:
            number -= inner
            low = middle
    for _ in range(number):
        low = _after_newline(data, low, coding)
    return low


def _after_newline(data: bytes, start: int, coding: Coding) -> int:
    found = data.find(coding.newline, start)
    while found > 0 and found % coding.width:
        found = data.find(coding.newline, found + 1)
    return len(data) if found < 0 else found + coding.width


def start_of_last(lines: int, end: int, read: Read, coding: Coding, check: Check) -> int:
    """Return the byte offset at which the last `lines` lines before the offset `end` begin."""
    last = read(max(0, end - coding.width), coding.width)
    wanted = lines + (last == coding.newline)
    while end > coding.bom:
        check()
        begin = (end - 1) // BLOCK * BLOCK
        data = read(begin, end - begin)
        inner = count(data, coding)
        if inner >= wanted:
            return begin + _end_of(data, inner - wanted + 1, coding)
        wanted -= inner
        end = begin
    return coding.bom


class Indexes:
    """The line indexes of the files read most recently."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[int, int], tuple[Identity, Coding, LineIndex]] = OrderedDict()

    def of(self, identity: Identity, coding: Coding) -> LineIndex:
        """Return the line index of a file in this state: the kept one, or a new one."""
        if time.time_ns() - identity.modified_ns < RACY_NS:
            return LineIndex(coding, identity.size)
        key = (identity.device, identity.inode)
        with self._lock:
            kept = self._kept.get(key)
            if kept is None or kept[:2] != (identity, coding):
                kept = (identity, coding, LineIndex(coding, identity.size))
                self._kept[key] = kept
            self._kept.move_to_end(key)
            while len(self._kept) > MOST_INDEXES:
                self._kept.popitem(last=False)
            return kept[2]
