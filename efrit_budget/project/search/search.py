"""Search project files with rg, and unsaved buffers."""

import codecs
import os
import stat
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from efrit_budget.project.paths import OutsideError
from efrit_budget.project.project import Located, open_beneath
from efrit_budget.project.search.globs import NOT_UTF8, exactly
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
from efrit_budget.project.search.walk import DIRECTLY, NEVER, Walk

MOST_KEPT_BYTES = 32 * 1024 * 1024
"""Output of one search that is kept; what comes after it is counted by rg."""
MOST_AGAIN, MOST_AGAIN_BYTES = 200, 64 * 1024 * 1024
"""How many files are searched again where folders change meanwhile, and how much of each."""
MOST_ALIKE = 200
"""Files that are searched one by one behind all others."""
UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
CLOCK_NS = 20_000_000
"""How far the clock of the files may be behind."""


def search(walk: Walk, scope: Scope, query: Query, *, count: bool = False) -> Hits:
    """Return all matches counted, and the first ones in full.

    Lines are searched one by one, and over their ends where the pattern says so, or where no line
    matches and the pattern could reach further.
    """
    pattern, literal = query.pattern, query.literal
    if "\n" not in pattern if literal else not OVER_LINES.search(pattern):
        hits = _search(walk, scope, query, count=count)
        if hits.matches or literal or not PERHAPS_OVER_LINES.search(pattern):
            return hits
    if literal:  # a line may end as on Windows
        pattern, literal = LINE_END.join(map(escaped, pattern.splitlines())), False
    further = replace(query, pattern=pattern, literal=literal, over_lines=True)
    return replace(_search(walk, scope, further, count=count), over_lines=True)


def _search(walk: Walk, scope: Scope, query: Query, *, count: bool) -> Hits:
    """Search the files, and unsaved buffers instead of theirs.

    Files that are called as secret ones are searched when it is known which hold none. Until then
    they were left out; where they are many, all is searched again without that.
    """
    hits = Hits()
    if scope.named is None or not scope.unsaved:
        paths = [NEVER] if walk.target == "." else [NEVER, "--", walk.target]
        hits = _found(walk, scope, query, [*scope.flags, *paths], count=count)
        alike = () if scope.limits is None else scope.alike
        if len(alike) > MOST_ALIKE or any(NOT_UTF8.search(name) for name in alike):
            scope = scope.by_name()
            hits = _found(walk, scope, query, [*scope.flags, *paths], count=count)
        elif alike:
            folders = sorted({name.rpartition("/")[0] or "." for name in alike})
            wanted = [f"--glob={exactly(name)}" for name in alike]
            more = _found(walk, scope, query, [*wanted, DIRECTLY, "--", *folders], count=count)
            hits = join(hits, more, count=count)
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


def _found(walk: Walk, scope: Scope, query: Query, limits: Sequence[str], *, count: bool) -> Hits:
    """Return what one run of rg finds."""
    form = ["--count"] if count else ["--heading", "--line-number", "--column"]
    command = [str(walk.rg), *walk.flags, *query.flags, *form, "--null", "--with-filename"]
    command += ["--stats", *limits]
    finished = run_rg(
        command,
        cwd=walk.root,
        cancellation=walk.cancellation,
        readable=walk.readable,
        kept_bytes=MOST_KEPT_BYTES,
    )
    return read_hits(finished, scope, count=count, alone=not query.context)


def _settled(walk: Walk, query: Query, hits: Hits, begun: int, *, count: bool) -> Hits:
    """Search files again, by descriptor, in whose folders something was renamed or made meanwhile.

    There a link may have stood in the place of a file while rg opened it, and led it elsewhere.
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
    """Return the folders that changed since a moment, and those below such."""
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
    """Return the matches of a file searched again, or none if it is gone."""
    name = os.fsdecode(block.path)
    try:
        descriptor = open_beneath(Located(walk.root / name, walk.root, name, name))
        with open(descriptor, "rb") as file:
            is_file = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
            data = file.read(MOST_AGAIN_BYTES) if is_file else b""
    except (OSError, OutsideError):
        data = b""
    if not data.startswith(UTF16):  # of UTF-16 rg searches all, of others up to the first NUL
        data = data.partition(b"\0")[0]
    found = _in_data(walk, block.path, data, query)
    if count:
        return found._replace(lines=b"", matches=min(found.matches, block.matches))
    return cut_block(found, block.matches) if found.matches > block.matches else found


def _in_data(walk: Walk, path: bytes, data: bytes, query: Query) -> Block:
    """Return the matches in data that rg reads from its input."""
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
