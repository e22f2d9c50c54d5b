"""Parse what rg prints: the matches by file, and their number in all."""

import os
import re
from collections.abc import Iterator
from dataclasses import replace

from efrit_budget.project.processes.run import Finished
from efrit_budget.project.search.hits import MATCHED, MOST_STORED, Block, Hits, cut_block
from efrit_budget.project.search.ripgrep import PatternError
from efrit_budget.project.search.scope import Scope
from efrit_budget.project.search.secret_files import NO_PROGRAM, REPORT, reported_name

MOST_COMPLAINT = 600
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
DENIED = re.compile(
    rb"(?m)^(?!.*%b)(?:rg: )?(.+): Permission denied \(os error 13\)$" % NO_PROGRAM.encode()
)
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
    denied = map(os.fsdecode, DENIED.findall(finished.stderr))
    secret = [*map(reported_name, REPORT.findall(finished.stderr))]
    secret += filter(scope.leaves_out, denied)
    complaints = len(COMPLAINTS.findall(finished.stderr))
    totals = Hits(
        matches=int(found[1]),
        matched_files=int(found[2]),
        searched_files=int(found[3]),
        unreadable=max(0, complaints - len(secret)),
        secret=sorted(secret),
    )
    if count:
        hits = _read_counts(finished.stdout, totals)
    else:
        hits = _read_matches(finished.stdout, scope, totals, alone=alone)
    top = os.fsencode(scope.secrets.top)
    names = os.fsdecode(b"\n".join(top + block.path for block in hits.blocks))
    return _without_secrets(hits, scope) if scope.secrets.secrets.may_be_in(names) else hits


def _read_counts(output: bytes, totals: Hits) -> Hits:
    blocks = sorted(Block(entry[1], b"", int(entry[2])) for entry in COUNT.finditer(output))
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
    return replace(totals, blocks=blocks, binary=binary)


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
        yield output[begin:ends], ends + 1, behind
        begin = behind + 2


def _without_secrets(hits: Hits, scope: Scope) -> Hits:
    """Return hits without the secret files that the flags of rg did not leave out.

    Their names have capitals beyond ASCII, or they were made after the files were listed.
    """
    secret = [block for block in hits.blocks if scope.leaves_out(os.fsdecode(block.path))]
    return replace(
        hits,
        blocks=[block for block in hits.blocks if block not in secret],
        matches=hits.matches - sum(block.matches for block in secret),
        matched_files=hits.matched_files - len(secret),
        secret=sorted([*hits.secret, *(os.fsdecode(block.path) for block in secret)]),
    )
