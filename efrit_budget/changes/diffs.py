"""Compare two contents of a file: a unified diff and its line counts."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from efrit_budget.project.text.coding import guess_coding

CONTEXT = 3
BINARY_BYTES = 8000
"""A NUL among this many first bytes makes a file binary, as for git."""
MOST_BYTES = 16_000_000
"""The most differing bytes of both contents that are compared line by line."""
BLOCK = 1 << 16
DiffRange = tuple[int, int, int, int]
"""Begin and end of a range of old lines, then of the range of new lines that replaces it."""

MOST_COMPARED = 250_000
"""The most pairs of lines for which every line is compared with every other."""
NOWHERE = "/dev/null"
NO_NEWLINE = "\\ No newline at end of file\n"


@dataclass(frozen=True)
class Version:
    """The name and the content of a file on one side of a diff; the data None means no file."""

    name: str
    data: bytes | None


@dataclass(frozen=True)
class LineDifference:
    """The differing lines of two contents, with context, and the ranges that differ in them."""

    old: Sequence[bytes]
    new: Sequence[bytes]
    first: int
    """The number of equal lines before the first of `old` and of `new`."""
    ranges: Sequence[DiffRange]

    @property
    def added(self) -> int:
        """The number of lines added."""
        return sum(end - begin for _, _, begin, end in self.ranges)

    @property
    def removed(self) -> int:
        """The number of lines removed."""
        return sum(end - begin for begin, end, _, _ in self.ranges)


def counts(old: bytes | None, new: bytes | None) -> tuple[int, int]:
    """Return the numbers of lines added and removed: 0 for binary, all for too large contents."""
    if old == new or is_binary(old) or is_binary(new):
        return 0, 0
    found = _compare(old or b"", new or b"")
    if isinstance(found, LineDifference):
        return found.added, found.removed
    return found[1], found[0]


def unified(old: Version, new: Version) -> str:
    """Return the unified diff, one line if binary or too large, empty if nothing differs."""
    if (old.data, old.name) == (new.data, new.name):
        return ""
    if is_binary(old.data) or is_binary(new.data):
        return f"{_with_name(old, new)}: binary, {_size(old)} before, {_size(new)} after\n"
    found = _compare(old.data or b"", new.data or b"")
    if not isinstance(found, LineDifference):
        before, after = (f"{count:,} lines" for count in found)
        return f"{_with_name(old, new)}: {before} became {after}, too many to show\n"
    hunks = "".join(_hunks(found))
    header = f"--- {_heading('a', old)}\n+++ {_heading('b', new)}\n"
    return _rename_lines(old, new) + (
        header + hunks if hunks or not _rename_lines(old, new) else ""
    )


def is_binary(data: bytes | None) -> bool:
    """Return whether a content is binary, by git's rule."""
    return data is not None and b"\0" in data[:BINARY_BYTES]


def as_buffer(data: bytes | None) -> bytes | None:
    """Return a file's content as its buffer has it, in UTF-8 with LF; a binary one unchanged."""
    if (
        data is None
        or (coding := guess_coding(lambda at, size: data[at : at + size], len(data))) is None
    ):
        return data
    text = coding.decoded(coding.whole(data[coding.bom :]))
    if text.count("\r\n") == text.count("\n"):
        text = text.replace("\r\n", "\n")
    return text.encode("utf-8", "surrogateescape" if coding.width == 1 else "replace")


def is_saved(text: bytes | None, data: bytes | None) -> bool:
    """Return whether a file's content `data` has the buffer's text `text`; False for None."""
    return text is not None and data is not None and as_buffer(data) == text


def _with_name(old: Version, new: Version) -> str:
    return old.name if old.name == new.name else f"{old.name} -> {new.name}"


def _size(side: Version) -> str:
    if side.data is None:
        return "no file"
    return "1 byte" if len(side.data) == 1 else f"{len(side.data):,} bytes"


def _heading(prefix: str, side: Version) -> str:
    return NOWHERE if side.data is None else _prefix_lines(prefix, side.name)


def _prefix_lines(prefix: str, name: str) -> str:
    return f'"{prefix}/{name[1:]}' if name.startswith('"') else f"{prefix}/{name}"


def _rename_lines(old: Version, new: Version) -> str:
    """Return the header lines of a rename, as git writes them; empty without a rename."""
    if old.name == new.name or old.data is None or new.data is None:
        return ""
    names = f"{_prefix_lines('a', old.name)} {_prefix_lines('b', new.name)}"
    return f"diff --git {names}\nrename from {old.name}\nrename to {new.name}\n"


def _compare(old: bytes, new: bytes) -> LineDifference | tuple[int, int]:
    """Return the differing lines, or the line counts of both contents if they are too large."""
    begin = _common_lines(old, new)
    end = _common_end(old[begin:], new[begin:])
    middle, new_middle = old[begin : len(old) - end], new[begin : len(new) - end]
    if len(middle) + len(new_middle) > MOST_BYTES:
        return _count(old), _count(new)
    lines, new_lines = _lines(middle), _lines(new_middle)
    return LineDifference(
        lines, new_lines, old.count(b"\n", 0, begin), differing_lines(lines, new_lines)
    )


def _lines(data: bytes) -> list[bytes]:
    """Split a content into lines, which keep their line feeds; split at nothing else."""
    *whole, last = data.split(b"\n")
    lines = [line + b"\n" for line in whole]
    return [*lines, last] if last else lines


def _count(data: bytes) -> int:
    return data.count(b"\n") + (data[-1:] not in (b"", b"\n"))


def _common_lines(old: bytes, new: bytes) -> int:
    """Return the offset at which the context before the first difference begins."""
    at = _line_start(old, _common(old, new))
    for _ in range(CONTEXT):
        at = _line_start(old, at - 1) if at else 0
    return at


def _line_start(data: bytes, at: int) -> int:
    return data.rfind(b"\n", 0, max(at, 0)) + 1


def _common_end(old: bytes, new: bytes) -> int:
    """Return the size of the equal end: whole lines behind the context of the last difference."""
    at = len(old) - _common(old[::-1], new[::-1])
    for _ in range(CONTEXT + 1):
        found = old.find(b"\n", at)
        if found < 0:
            return 0
        at = found + 1
    return len(old) - at


def _common(old: bytes, new: bytes) -> int:
    """Return how many leading bytes two contents share."""
    size = min(len(old), len(new))
    at = 0
    while at < size and old[at : at + BLOCK] == new[at : at + BLOCK]:
        at += BLOCK
    return min(size, at + _common_start(old[at : at + BLOCK], new[at : at + BLOCK]))


def _common_start(old: Sequence[object], new: Sequence[object]) -> int:
    """Return how many leading lines, or bytes, two texts share."""
    pairs = zip(old, new, strict=False)
    size = min(len(old), len(new))
    return next((at for at, (one, other) in enumerate(pairs) if one != other), size)


def _hunks(found: LineDifference) -> Iterator[str]:
    for group in _groups(found.ranges):
        begin = max(0, group[0][0] - CONTEXT)
        new_begin = group[0][2] - (group[0][0] - begin)
        end = min(len(found.old), group[-1][1] + CONTEXT)
        new_end = group[-1][3] + (end - group[-1][1])
        old_range = _range(found.first + begin, end - begin)
        new_range = _range(found.first + new_begin, new_end - new_begin)
        yield f"@@ -{old_range} +{new_range} @@\n"
        at = begin
        for old_begin, old_end, added, added_end in group:
            yield from _shown(" ", found.old[at:old_begin])
            yield from _shown("-", found.old[old_begin:old_end])
            yield from _shown("+", found.new[added:added_end])
            at = old_end
        yield from _shown(" ", found.old[at:end])


def _groups(ranges: Sequence[DiffRange]) -> Iterator[list[DiffRange]]:
    """Yield the ranges of each hunk; ranges whose context meets are in one hunk."""
    group: list[DiffRange] = []
    for one_range in ranges:
        if group and one_range[0] - group[-1][1] > 2 * CONTEXT:
            yield group
            group = []
        group.append(one_range)
    if group:
        yield group


def _range(begin: int, count: int) -> str:
    first = begin + 1 if count else begin
    return f"{first}" if count == 1 else f"{first},{count}"


def _shown(mark: str, lines: Sequence[bytes]) -> Iterator[str]:
    for line in lines:
        text = line.decode("utf-8", "replace")
        yield f"{mark}{text}" if line.endswith(b"\n") else f"{mark}{text}\n{NO_NEWLINE}"


# Lines that differ


def differing_lines(old: Sequence[bytes], new: Sequence[bytes]) -> list[DiffRange]:
    """Return the ranges of lines that differ, in order, with adjacent ones merged."""
    joined: list[DiffRange] = []
    for begin, end, new_begin, new_end in _differing_in(old, new, 0, 0):
        if joined and joined[-1][1] == begin and joined[-1][3] == new_begin:
            joined[-1] = (joined[-1][0], end, joined[-1][2], new_end)
        else:
            joined.append((begin, end, new_begin, new_end))
    return joined


def _differing_in(
    old: Sequence[bytes], new: Sequence[bytes], at: int, new_at: int
) -> Iterator[DiffRange]:
    """Yield the differing ranges of two lists of lines, numbered from `at` and `new_at` on."""
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


def _match_blocks(
    old: Sequence[bytes], new: Sequence[bytes], at: int, new_at: int
) -> Iterator[DiffRange]:
    for tag, begin, end, new_begin, new_end in SequenceMatcher(
        None, old, new, autojunk=False
    ).get_opcodes():
        if tag != "equal":
            yield (at + begin, at + end, new_at + new_begin, new_at + new_end)


def _anchors(old: Sequence[bytes], new: Sequence[bytes]) -> list[tuple[int, int]]:
    """Return pairs of the old and new numbers of lines that are unique in both texts, in order."""
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
