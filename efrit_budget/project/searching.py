"""Searching the files of a project with rg, and what Emacs holds of them unsaved."""

from __future__ import annotations

import codecs
import os
import re
import stat
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Literal, NamedTuple

from efrit_budget.project.paths import OutsideError
from efrit_budget.project.processes import Finished
from efrit_budget.project.project import Located, open_beneath
from efrit_budget.project.ripgrep import (
    FAILED,
    LINE_END,
    PatternError,
    escaped,
    may_reach_over_lines,
    reaches_over_lines,
    run_rg,
)
from efrit_budget.project.scope import Scope, Unsaved
from efrit_budget.project.walking import NEVER, Walk

MOST_KEPT_BYTES = 32 * 1024 * 1024
"""Output of one search that is kept; what comes after it is counted by rg."""
MOST_STORED = 10_000
"""Matches that are read one by one."""
MOST_COMPLAINT = 600
MOST_AGAIN, MOST_AGAIN_BYTES = 200, 64 * 1024 * 1024
"""How many files are searched again where folders change meanwhile, and how much of each."""
UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
CLOCK_NS = 20_000_000
"""How far the clock of the files may be behind."""

CASES = {"smart": "--smart-case", "sensitive": "--case-sensitive", "ignore": "--ignore-case"}
STATS = re.compile(
    rb"\n\d+ matches\n(\d+) matched lines\n(\d+) files contained matches\n"
    rb"(\d+) files searched\n\d+ bytes printed\n\d+ bytes searched\n"
    rb"[\d.]+ seconds[^\n]*\n[\d.]+ seconds[^\n]*\n\Z"
)
"""What rg says at its end; the name of a file can hold such lines, but nothing follows these."""
STATS_BYTES = 1000
COUNT = re.compile(rb"(?s)(.*?)\0(\d+)\n")
COMPLAINTS = re.compile(rb"(?m)^rg: (?!No files were searched)")
"""What rg says of each file it cannot read; to find none is no complaint."""
MATCHED = re.compile(rb"(?m)^\d+:\d+:")
BINARY = b"binary file"
LEFT = re.compile(
    rb"(?s)\n(?!\d+[:-]|--)[^\n]*: (?:WARNING: stopped searching )?binary file [^\n]*$"
)
"""What rg says at the end of a file it left because it is binary."""

Case = Literal["smart", "sensitive", "ignore"]


@dataclass(frozen=True)
class Query:
    """What is looked for in each line."""

    pattern: str
    literal: bool = False
    case: Case = "sensitive"
    word: bool = False
    context: int = 0
    over_lines: bool = False
    """Whether a match may reach over several lines."""

    @property
    def flags(self) -> list[str]:
        """The flags of rg for it. A line may end as on Windows; to look for that costs time."""
        return [
            CASES[self.case],
            *(["--crlf"] if "$" in self.pattern and not self.literal else []),
            *(["--fixed-strings"] if self.literal else []),
            *(["--multiline"] if self.over_lines else []),
            *(["--word-regexp"] if self.word else []),
            *([f"--context={self.context}"] if self.context else []),
            f"--regexp={self.pattern}",
        ]


class Block(NamedTuple):
    """The matches of one file, as rg prints them: each behind its line's number and its column.

    Lines around them stand behind their number and a dash, and two dashes in a gap.
    """

    path: bytes
    lines: bytes
    matches: int
    unsaved: bool = False
    stale: bool = False
    """Whether it is unsaved, and the file on disk has changed since."""


@dataclass(frozen=True)
class Hits:
    """What a search came to. Matches are lines, however often the pattern is in one."""

    blocks: list[Block] = field(default_factory=list)
    """By path, up to the most matches that are stored."""
    matches: int = 0
    matched_files: int = 0
    searched_files: int = 0
    unreadable: int = 0
    binary: list[str] = field(default_factory=list)
    """Files of which lines are missing, because they turned out to be binary."""
    unsettled: int = 0
    """Files that are left out, because they changed too fast to be looked at."""
    over_lines: bool = False
    """Whether matches may reach over lines; each line of one is counted, or each match by file."""


def search(walk: Walk, scope: Scope, query: Query, *, count: bool = False) -> Hits:
    """Every match in the scope: counted, and the first of them given.

    Lines are searched one by one, and over their ends where the pattern says so, or where no line
    matches and the pattern could reach further.
    """
    if not reaches_over_lines(query.pattern, literal=query.literal):
        hits = _search(walk, scope, query, count=count)
        if hits.matches or query.literal or not may_reach_over_lines(query.pattern):
            return hits
    pattern, literal = query.pattern, query.literal
    if literal:  # a line may end as on Windows
        pattern, literal = LINE_END.join(map(escaped, pattern.splitlines())), False
    further = replace(query, pattern=pattern, literal=literal, over_lines=True)
    return replace(_search(walk, scope, further, count=count), over_lines=True)


def _search(walk: Walk, scope: Scope, query: Query, *, count: bool) -> Hits:
    hits = Hits() if scope.only_unsaved else _on_disk(walk, scope, query, count=count)
    unsaved = [_in_text(walk, buffer, query) for buffer in scope.unsaved]
    if not unsaved:
        return hits
    found = [block for block in unsaved if block.matches]
    blocks = sorted([*hits.blocks, *found])
    return replace(
        hits,
        blocks=blocks if count else list(_first(MOST_STORED, blocks)),
        matches=hits.matches + sum(block.matches for block in found),
        matched_files=hits.matched_files + len(found),
        searched_files=hits.searched_files + len(unsaved),
    )


def _first(most: int, blocks: Iterable[Block]) -> Iterator[Block]:
    """The blocks up to so many matches, the last of them cut."""
    for block in blocks:
        if block.matches > most:
            if most:
                yield _cut(block, most)
            return
        yield block
        most -= block.matches


def _cut(block: Block, most: int) -> Block:
    begins = [match.start() for match in MATCHED.finditer(block.lines)]
    return block._replace(lines=block.lines[: begins[most]].rstrip(b"\n"), matches=most)


# On disk


def _on_disk(walk: Walk, scope: Scope, query: Query, *, count: bool) -> Hits:
    form = ["--count"] if count else ["--heading", "--line-number", "--column"]
    command = [str(walk.rg), *walk.flags, *query.flags, *form, "--null", "--with-filename"]
    command += ["--stats", *scope.flags, NEVER, *walk.paths]
    begun = time.time_ns()
    finished = run_rg(
        command,
        cwd=walk.root,
        cancellation=walk.cancellation,
        readable=walk.readable,
        kept_bytes=MOST_KEPT_BYTES,
    )
    lines, files, searched = _stats(finished)
    if count:
        hits = _counted(finished, scope)
    else:
        totals = Hits(matches=lines, matched_files=files)
        hits = _read(finished.stdout, scope, totals, alone=not query.context)
    hits = _settled(walk, query, hits, begun, count=count)
    unreadable = len(COMPLAINTS.findall(finished.stderr))
    return replace(hits, searched_files=searched, unreadable=unreadable)


def _settled(walk: Walk, query: Query, hits: Hits, begun: int, *, count: bool) -> Hits:
    """Search files again, by descriptor, in whose folders something was renamed or made meanwhile.

    There a link may have stood in the place of a file while rg opened it, and led it elsewhere.
    """
    folders = _Folders(walk.root, begun - CLOCK_NS)
    changed = [block for block in hits.blocks if folders.changed(_above(block.path))]
    if not changed:
        return hits
    again = {block.path: _again(walk, query, block, count=count) for block in changed[:MOST_AGAIN]}
    kept = [
        again.get(block.path, block) for block in hits.blocks if block not in changed[MOST_AGAIN:]
    ]
    blocks = [block for block in kept if block.matches]
    fewer = sum(block.matches for block in hits.blocks) - sum(block.matches for block in blocks)
    return replace(
        hits,
        blocks=blocks,
        matches=hits.matches - fewer,
        matched_files=hits.matched_files - len(hits.blocks) + len(blocks),
        unsettled=len(changed[MOST_AGAIN:]),
    )


class _Folders:
    """Which folders below a root, or above them, have changed since a moment."""

    def __init__(self, root: Path, since: int) -> None:
        self._root = root
        self._since = since
        self._known: dict[bytes, bool] = {}

    def changed(self, folder: bytes) -> bool:
        """Tell of one, by its path from the root on."""
        if folder not in self._known:
            above = bool(folder) and self.changed(_above(folder))
            self._known[folder] = above or self._has_changed(os.fsdecode(folder))
        return self._known[folder]

    def _has_changed(self, folder: str) -> bool:
        try:
            found = (self._root / folder).lstat()
        except OSError:
            return True
        return not stat.S_ISDIR(found.st_mode) or found.st_ctime_ns >= self._since


def _above(path: bytes) -> bytes:
    return path.rpartition(b"/")[0]


def _again(walk: Walk, query: Query, block: Block, *, count: bool) -> Block:
    """The matches of a file as it is now; none where it is no file of the project."""
    name = os.fsdecode(block.path)
    try:
        descriptor = open_beneath(Located(walk.root / name, walk.root, name, name))
        with open(descriptor, "rb") as file:
            data = file.read(MOST_AGAIN_BYTES) if _is_file(file) else b""
    except (OSError, OutsideError):
        data = b""
    found = _in_data(walk, block.path, _text_in(data), query)
    if count:
        return found._replace(lines=b"", matches=min(found.matches, block.matches))
    return _cut(found, block.matches) if found.matches > block.matches else found


def _text_in(data: bytes) -> bytes:
    """Return the part of a file that rg searches: to the first NUL, but in UTF-16 all of it."""
    return data if data.startswith(UTF16) else data.partition(b"\0")[0]


def _is_file(file: IO[bytes]) -> bool:
    return stat.S_ISREG(os.fstat(file.fileno()).st_mode)


def _stats(finished: Finished) -> tuple[int, int, int]:
    """Lines that match, files that hold them, files searched; without these rg did not begin."""
    end = (finished.stdout[-STATS_BYTES:] + finished.tail)[-STATS_BYTES:]
    found = STATS.search(end)
    if found is None:
        said = finished.stderr.decode("utf-8", "replace").strip()
        raise PatternError(said.removeprefix("rg: ")[:MOST_COMPLAINT] or "rg was ended")
    return int(found[1]), int(found[2]), int(found[3])


def _counted(finished: Finished, scope: Scope) -> Hits:
    found = (Block(entry[1], b"", int(entry[2])) for entry in COUNT.finditer(finished.stdout))
    blocks = sorted(block for block in found if not scope.leaves_out(os.fsdecode(block.path)))
    return Hits(blocks, sum(block.matches for block in blocks), len(blocks))


def _read(output: bytes, scope: Scope, totals: Hits, *, alone: bool) -> Hits:
    """The first files of what was kept, by path, as far as matches are stored."""
    blocks: list[Block] = []
    binary: list[str] = []
    room, has_binary = MOST_STORED, BINARY in output
    for path, begin, end in sorted(_places(output)):
        if room <= 0:
            break
        block = _block(path, output[begin:end], alone=alone)
        if has_binary and (left := LEFT.search(b"\n" + block.lines)):
            binary.append(os.fsdecode(path))
            block = _block(path, block.lines[: max(0, left.start() - 1)], alone=alone)
        if block.lines:
            blocks.append(block)
            room -= block.matches
    if has_binary and not blocks and scope.named is not None:
        binary.append(scope.named)
    blocks = list(_first(MOST_STORED, blocks))
    return _without_new_secrets(replace(totals, blocks=blocks, binary=binary), scope)


def _places(output: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Each file's path, and where its lines begin and end.

    An empty line ends them, which no line of a match is; a path may hold anything but NUL. Where
    the output was cut, the last file is left away.
    """
    begin = 0
    while (ends := output.find(b"\0", begin)) >= 0:
        behind = output.find(b"\n\n", ends)
        if behind < 0:
            return
        yield output[begin:ends], ends + 1, behind
        begin = behind + 2


def _block(path: bytes, lines: bytes, *, alone: bool) -> Block:
    """A block whose matches are counted; where nothing is around them, each line is one."""
    matches = lines.count(b"\n") + 1 if alone else len(MATCHED.findall(lines))
    return Block(path, lines, matches)


def _without_new_secrets(hits: Hits, scope: Scope) -> Hits:
    """Take out what came into being after it was looked for."""
    names = os.fsdecode(b"\n".join(block.path for block in hits.blocks))
    if not scope.secrets.may_be_in(names):
        return hits
    kept = [block for block in hits.blocks if not scope.leaves_out(os.fsdecode(block.path))]
    fewer = len(hits.blocks) - len(kept)
    matches = sum(block.matches for block in hits.blocks) - sum(block.matches for block in kept)
    return replace(
        hits,
        blocks=kept,
        matches=hits.matches - matches,
        matched_files=hits.matched_files - fewer,
    )


# In Emacs


def _in_text(walk: Walk, buffer: Unsaved, query: Query) -> Block:
    """The matches in an unsaved text."""
    data = buffer.text.encode("utf-8", "replace")
    block = _in_data(walk, os.fsencode(buffer.name), data, query)
    return block._replace(unsaved=True, stale=buffer.stale)


def _in_data(walk: Walk, path: bytes, data: bytes, query: Query) -> Block:
    """The matches in what is given to rg as its input."""
    form = ["--line-number", "--column", "--no-heading", "--no-filename", "--text"]
    found = run_rg(
        [str(walk.rg), "--no-config", "--color=never", *query.flags, *form, "-"],
        cwd=walk.root,
        cancellation=walk.cancellation,
        given=data,
        kept_bytes=MOST_KEPT_BYTES,
    )
    if found.code == FAILED:
        raise PatternError(found.stderr.decode("utf-8", "replace").strip()[:MOST_COMPLAINT])
    if not found.stdout:
        return Block(path, b"", 0)
    return _block(path, found.stdout.rstrip(b"\n"), alone=not query.context)
