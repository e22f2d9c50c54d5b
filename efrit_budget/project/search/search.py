"""Search project files with rg, and unsaved buffers."""

import codecs
import os
import stat
from dataclasses import replace
from pathlib import Path

from efrit_budget.project.paths import OutsideError
from efrit_budget.project.project import Located, open_beneath
from efrit_budget.project.search.hits import MATCHED, Block, Hits, Query, cut_block, join
from efrit_budget.project.search.output import MOST_COMPLAINT, read_hits
from efrit_budget.project.search.ripgrep import (
    FAILED,
    LINE_END,
    OVER_LINES,
    PERHAPS_OVER_LINES,
    PatternError,
    escaped,
    run_rg,
)
from efrit_budget.project.search.scope import Scope
from efrit_budget.project.search.walk import Walk

MOST_KEPT_BYTES = 32 * 1024 * 1024
"""The most output of one search that is kept; later matches are only counted, by rg."""
MOST_AGAIN, MOST_AGAIN_BYTES = 200, 64 * 1024 * 1024
"""The most files, and bytes of each, that are searched again if folders change meanwhile."""
UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
CLOCK_NS = 20_000_000
"""Nanoseconds that the clock of the file system may be behind."""


def search(walk: Walk, scope: Scope, query: Query, *, count: bool = False) -> Hits:
    """Return the number of all matches, and the first matches in full unless `count` is set.

    Matches lie within lines; they may span lines if the pattern says so, or if no line matches
    and the pattern could match a newline.
    """
    pattern, literal = query.pattern, query.literal
    if "\n" not in pattern if literal else not OVER_LINES.search(pattern):
        hits = _search(walk, scope, query, count=count)
        if hits.matches or literal or not PERHAPS_OVER_LINES.search(pattern):
            return hits
    if literal:  # lines may end in CRLF
        pattern, literal = LINE_END.join(map(escaped, pattern.splitlines())), False
    further = replace(query, pattern=pattern, literal=literal, over_lines=True)
    return replace(_search(walk, scope, further, count=count), over_lines=True)


def _search(walk: Walk, scope: Scope, query: Query, *, count: bool) -> Hits:
    """Return the matches in the files, and in unsaved buffers in place of their files."""
    hits = Hits()
    if scope.named is None or not scope.unsaved:
        form = ["--count"] if count else ["--heading", "--line-number", "--column"]
        flags = [*query.flags, *form, "--null", "--with-filename", "--stats", *scope.flags]
        finished = walk.run(flags, MOST_KEPT_BYTES)
        hits = read_hits(finished, scope, count=count, alone=not query.context)
        hits = _settled(walk, query, hits, scope.begun, count=count)
    if not scope.unsaved:
        return hits
    blocks = []
    for buffer in scope.unsaved:
        data = buffer.text.encode("utf-8", "replace")
        block = _in_data(walk, os.fsencode(buffer.name), data, query)
        if block.matches:
            blocks.append(block._replace(unsaved=True, stale=buffer.stale))
    matches = sum(block.matches for block in blocks)
    return join(hits, Hits(blocks, matches, len(blocks), len(scope.unsaved)), count=count)


def _settled(walk: Walk, query: Query, hits: Hits, begun: int, *, count: bool) -> Hits:
    """Return the hits after searching the files again whose folders changed since `begun`.

    In such a folder, a link to another place may have replaced a file while rg opened it.
    """
    folders = {block.path.rpartition(b"/")[0] for block in hits.blocks}
    folders = _changed_folders(walk.root, folders, begun - CLOCK_NS)
    changed = [block for block in hits.blocks if block.path.rpartition(b"/")[0] in folders]
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


def _changed_folders(root: Path, folders: set[bytes], since: int) -> set[bytes]:
    """Return the folders that changed after the time `since`, or are below one that did."""
    known: dict[bytes, bool] = {}
    for folder in folders:
        changed, path = False, b""
        for name in (b"", *folder.split(b"/")):
            path = path + b"/" + name if path else name
            if path not in known:
                try:
                    found = (root / os.fsdecode(path)).lstat()
                    same = stat.S_ISDIR(found.st_mode) and found.st_ctime_ns < since
                except OSError:
                    same = False
                known[path] = changed or not same
            changed = known[path]
    return {folder for folder in folders if known[folder]}


def _again(walk: Walk, query: Query, block: Block, *, count: bool) -> Block:
    """Return the matches of a file that is searched again; none if it cannot be opened."""
    name = os.fsdecode(block.path)
    try:
        descriptor = open_beneath(Located(walk.root / name, walk.root, name, name))
        with open(descriptor, "rb") as file:
            is_file = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
            data = file.read(MOST_AGAIN_BYTES) if is_file else b""
    except (OSError, OutsideError):
        data = b""
    if not data.startswith(UTF16):  # rg searches all of UTF-16, else up to a NUL
        data = data.partition(b"\0")[0]
    found = _in_data(walk, block.path, data, query)
    if count:
        return found._replace(lines=b"", matches=min(found.matches, block.matches))
    return cut_block(found, block.matches) if found.matches > block.matches else found


def _in_data(walk: Walk, path: bytes, data: bytes, query: Query) -> Block:
    """Return the matches in `data`, which rg reads from its standard input."""
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
    lines = found.stdout.rstrip(b"\n")
    return Block(path, lines, len(MATCHED.findall(lines)))
