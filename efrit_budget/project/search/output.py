"""Parse what rg prints: the matches by file, and their number in all."""

import os
import re
from collections.abc import Iterator
from dataclasses import replace

from efrit_budget.project.processes.run import Finished
from efrit_budget.project.search.hits import MATCHED, MOST_STORED, Block, Hits, cut_block
from efrit_budget.project.search.ripgrep import PatternError
from efrit_budget.project.search.scope import Scope

MOST_COMPLAINT = 600
HERE = b"./"
"""The prefix of the names that rg prints when it is told to search the folder `.`."""
STATS = re.compile(
    rb"\n\d+ matches\n(\d+) matched lines\n(\d+) files contained matches\n"
    rb"(\d+) files searched\n\d+ bytes printed\n\d+ bytes searched\n"
    rb"[\d.]+ seconds[^\n]*\n[\d.]+ seconds[^\n]*\n\Z"
)
"""The statistics that rg prints last; names of files may look like them, but come earlier."""
STATS_BYTES = 1000
COUNT = re.compile(rb"(?s)(.*?)\0(\d+)\n")
COMPLAINTS = re.compile(rb"(?m)^rg: (?!No files were searched)")
"""The start of rg's message on a file it cannot read; finding no file is no such message."""
BINARY = b"binary file"
LEFT = re.compile(
    rb"(?s)\n(?!\d+[:-]|--)[^\n]*: (?:WARNING: stopped searching )?binary file [^\n]*$"
)
"""The message behind a file's lines when rg stopped there because the file is binary."""


def read_hits(finished: Finished, scope: Scope, *, count: bool, alone: bool) -> Hits:
    """Return the hits that rg printed; raise its error if it printed no statistics."""
    end = (finished.stdout[-STATS_BYTES:] + finished.tail)[-STATS_BYTES:]
    found = STATS.search(end)
    if found is None:
        said = finished.stderr.decode("utf-8", "replace").strip()
        raise PatternError(said.removeprefix("rg: ")[:MOST_COMPLAINT] or "rg was ended")
    totals = Hits(
        matches=int(found[1]),
        matched_files=int(found[2]),
        searched_files=int(found[3]),
        unreadable=len(COMPLAINTS.findall(finished.stderr)),
    )
    if count:
        return _read_counts(finished.stdout, scope, totals)
    return _read_matches(finished.stdout, scope, totals, alone=alone)


def _read_counts(output: bytes, scope: Scope, totals: Hits) -> Hits:
    found = (
        Block(entry[1].removeprefix(HERE), b"", int(entry[2])) for entry in COUNT.finditer(output)
    )
    blocks = sorted(block for block in found if not scope.leaves_out(os.fsdecode(block.path)))
    matches = sum(block.matches for block in blocks)
    return replace(totals, blocks=blocks, matches=matches, matched_files=len(blocks))


def _read_matches(output: bytes, scope: Scope, totals: Hits, *, alone: bool) -> Hits:
    """Return the hits in rg's output, sorted by path, with at most MOST_STORED matches."""
    blocks: list[Block] = []
    binary: list[str] = []
    room, has_binary = MOST_STORED, BINARY in output
    for path, begin, end in sorted(_places(output)):
        if room <= 0:
            break
        lines = output[begin:end]
        if has_binary and (left := LEFT.search(b"\n" + lines)):
            binary.append(os.fsdecode(path))
            lines = lines[: max(0, left.start() - 1)]
        if lines:
            matches = lines.count(b"\n") + 1 if alone else len(MATCHED.findall(lines))
            blocks.append(Block(path, lines, matches))
            room -= matches
    if has_binary and not blocks and scope.named is not None:
        binary.append(scope.named)
    if room < 0:
        blocks[-1] = cut_block(blocks[-1], blocks[-1].matches + room)
    hits = replace(totals, blocks=blocks, binary=binary)
    found = scope.secrets.top + os.fsdecode(b"\n".join(block.path for block in blocks))
    is_suspect = scope.secrets.secrets.may_be_in(found)
    return _without_new_secrets(hits, scope) if is_suspect else hits


def _places(output: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Yield each file's path, and the offsets at which the file's lines begin and end.

    An empty line ends them, because each line begins with its number; a path may hold anything
    but NUL. If the output was cut, the last file is left out.
    """
    begin = 0
    while (ends := output.find(b"\0", begin)) >= 0:
        behind = output.find(b"\n\n", ends)
        if behind < 0:
            return
        yield output[begin:ends].removeprefix(HERE), ends + 1, behind
        begin = behind + 2


def _without_new_secrets(hits: Hits, scope: Scope) -> Hits:
    """Return hits without secret files that were made after the search for secret files."""
    kept = [block for block in hits.blocks if not scope.leaves_out(os.fsdecode(block.path))]
    fewer = len(hits.blocks) - len(kept)
    matches = sum(block.matches for block in hits.blocks) - sum(block.matches for block in kept)
    return replace(
        hits,
        blocks=kept,
        matches=hits.matches - matches,
        matched_files=hits.matched_files - fewer,
    )
