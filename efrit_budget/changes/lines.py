"""Match the lines of two texts; fast for large texts with few differences."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

Lines = Sequence[bytes]
DiffRange = tuple[int, int, int, int]
"""Lines of the old text, from and to, and the lines of the new one that stand in their place."""

MOST_COMPARED = 250_000
"""Pairs of lines up to which every one is compared with every other."""


def differing(old: Lines, new: Lines) -> list[DiffRange]:
    """Return the differing stretches in order, with adjacent ones merged."""
    joined: list[DiffRange] = []
    for begin, end, new_begin, new_end in _differing_in(old, new, 0, 0):
        if joined and joined[-1][1] == begin and joined[-1][3] == new_begin:
            joined[-1] = (joined[-1][0], end, joined[-1][2], new_end)
        else:
            joined.append((begin, end, new_begin, new_end))
    return joined


def _differing_in(old: Lines, new: Lines, at: int, new_at: int) -> Iterator[DiffRange]:
    """Return the differing stretches of two parts that begin at these lines."""
    begin = _common_start(old, new)
    end = _common_start(old[begin:][::-1], new[begin:][::-1])
    old, new = old[begin : len(old) - end], new[begin : len(new) - end]
    at, new_at = at + begin, new_at + begin
    if not old or not new:
        if old or new:
            yield (at, at + len(old), new_at, new_at + len(new))
        return
    if len(old) * len(new) <= MOST_COMPARED:
        yield from _match_blocks(old, new, at, new_at)
        return
    done, new_done = 0, 0
    for line, new_line in [*_anchors(old, new), (len(old), len(new))]:
        if (line, new_line) == (len(old), len(new)) and (done, new_done) == (0, 0):
            yield (at, at + len(old), new_at, new_at + len(new))
            return
        part, new_part = old[done:line], new[new_done:new_line]
        yield from _differing_in(part, new_part, at + done, new_at + new_done)
        done, new_done = line + 1, new_line + 1


def _match_blocks(old: Lines, new: Lines, at: int, new_at: int) -> Iterator[DiffRange]:
    for tag, begin, end, new_begin, new_end in SequenceMatcher(
        None, old, new, autojunk=False
    ).get_opcodes():
        if tag != "equal":
            yield (at + begin, at + end, new_at + new_begin, new_at + new_end)


def _common_start(old: Lines, new: Lines) -> int:
    """Return how many leading lines two texts share."""
    pairs = zip(old, new, strict=False)
    return next(
        (number for number, (one, other) in enumerate(pairs) if one != other),
        min(len(old), len(new)),
    )


def _anchors(old: Lines, new: Lines) -> list[tuple[int, int]]:
    """Return lines that occur once in each text and in the same order."""
    counts, new_counts = Counter(old), Counter(new)
    places = {line: number for number, line in enumerate(new) if new_counts[line] == 1}
    pairs = [
        (number, places[line])
        for number, line in enumerate(old)
        if counts[line] == 1 and line in places
    ]
    return _longest_rising(pairs)


def _longest_rising(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest subsequence of pairs whose second members rise."""
    ends: list[int] = []
    chosen: list[int] = []
    before: list[int | None] = []
    for number, (_, place) in enumerate(pairs):
        length = bisect_left(ends, place)
        ends[length:] = [place, *ends[length + 1 :]] if length < len(ends) else [place]
        chosen[length:] = [number, *chosen[length + 1 :]] if length < len(chosen) else [number]
        before.append(chosen[length - 1] if length else None)
    run: list[tuple[int, int]] = []
    at = chosen[-1] if chosen else None
    while at is not None:
        run.append(pairs[at])
        at = before[at]
    return run[::-1]
