"""Diffs as results: one line per changed file, then the hunks."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

from efrit_budget.errors import JsonObject
from efrit_budget.project.git.diff import Difference
from efrit_budget.project.git.patches import LINK, FileChange
from efrit_budget.project.paths import shown_name
from efrit_budget.results.body import Body, of_items, preceded
from efrit_budget.results.marks import own
from efrit_budget.tools.sizes import counted

LARGE_FILE_POINTER = b"version https://git-lfs.github.com/spec/"
LINE_END_SIGN = "␍"
MOST = 500
WORDS = {
    "M": "Modified",
    "A": "Added",
    "D": "Deleted",
    "R": "Renamed",
    "C": "Copied",
    "T": "Changed kind",
    "U": "Unmerged",
}
LEFT_OUT = "Hunks of files that usually hold secrets are left out; give one as path to ask."

Hidden = Callable[[FileChange], bool]


def diff_body(found: Difference, is_secret: Hidden, preamble: str = "") -> Body:
    """Return a diff as a body: a line for each file, then the hunks (no secret ones) as items."""
    every = [*found.changes, *found.patched] if found.cut else found.changes
    secret = {change.path for change in every if is_secret(change)}
    details = [", ".join(_each_detail(change, found, secret)) for change in found.changes]
    lines = list(map(change_line, found.changes, details))
    facts = [change_facts(change, secret) for change in found.changes]
    left_out = f"{own(LEFT_OUT)}\n" if secret else ""
    added = sum(change.additions for change in found.changes)
    deleted = sum(change.deletions for change in found.changes)
    totals = f"{counted(len(found.changes), 'file')}, +{added:,} -{deleted:,}"
    head = f"{preamble}{own(totals)}\n{left_out}"
    groups = [
        (f"{change.status} {_names(change)}", [(hunk, None) for hunk in _hunks(change)])
        for change in found.patched
        if change.hunks and change.path not in secret
    ]
    if not groups:
        return preceded(head, of_items("files", [(None, list(zip(lines, facts, strict=True)))]))
    stat = "".join(f"{line}\n" for line in lines)
    body = preceded(f"{head}{stat}\n", of_items("hunks", groups, files=facts))
    return replace(body, item_data=())


def compressed_diff(title: str, body: Body) -> str:
    """Return the summary of a diff: counts of files and lines, and files by kind of change."""
    files: Sequence[JsonObject] = body.data.get("files") or body.item_data
    added, deleted = (sum(file[key] for file in files) for key in ("additions", "deletions"))
    named = [
        f"{word}: {', '.join(file['path'] for file in files if file['status'] == letter)}."
        for letter, word in WORDS.items()
        if any(file["status"] == letter for file in files)
    ]
    text = " ".join([f"{title}: {counted(len(files), 'file')}, +{added}/-{deleted}.", *named])
    return text if len(text) <= MOST else f"{text[: MOST - 4]} ..."


def change_facts(change: FileChange, secret: Collection[str] = ()) -> JsonObject:
    """Return a change as data for programs."""
    facts: JsonObject = {
        "path": shown_name(change.path),
        "status": change.status,
        "additions": change.additions,
        "deletions": change.deletions,
        "binary": change.binary,
    }
    if change.old_path is not None:
        facts["old_path"] = shown_name(change.old_path)
    if change.path in secret:
        facts["secret"] = True
    return facts


def _names(change: FileChange) -> str:
    name = shown_name(change.path)
    return name if change.old_path is None else f"{shown_name(change.old_path)} → {name}"


def change_line(change: FileChange, details: str = "") -> str:
    """Return a change as one line: status, name and the numbers of added and deleted lines."""
    counts = f" +{change.additions}" if change.additions else ""
    counts += f" -{change.deletions}" if change.deletions else ""
    return f"{change.status} {_names(change)}{counts}{f' ({details})' if details else ''}"


def _each_detail(change: FileChange, found: Difference, secret: set[str]) -> Iterator[str]:
    """Yield facts on a change that its counts do not show, such as `binary`."""
    if change.is_submodule:
        yield "submodule"
    elif LINK in (change.mode, change.old_mode):
        yield "link"
    if change.old_mode and change.mode and change.old_mode != change.mode:
        yield f"mode {change.old_mode} → {change.mode}"
    elif change.status == "A" and change.mode.startswith("1007"):
        yield f"mode {change.mode}"
    if change.binary:
        yield "binary"
    if LARGE_FILE_POINTER in change.hunks:
        yield "pointer to a large file (LFS), not its content"
    if change.path in found.unfiltered:
        yield "compared as it lies on the disk: its filter was not run"
    if b"\r\n" in change.hunks:
        yield "CRLF" if _is_crlf(change.hunks) else f"{LINE_END_SIGN} marks CRLF"
    if change.path in secret:
        yield "secret: hunks left out"


def _hunks(change: FileChange) -> list[str]:
    """Return the hunks as texts, with invalid bytes replaced; mark CRLF if some lines end in LF."""
    hunks = change.hunks
    if b"\r\n" in hunks:
        sign = b"" if _is_crlf(hunks) else LINE_END_SIGN.encode()
        hunks = hunks.replace(b"\r\n", sign + b"\n")
    first, *others = hunks.decode("utf-8", "replace").removesuffix("\n").split("\n@@")
    return [first, *(f"@@{other}" for other in others)]


def _is_crlf(hunks: bytes) -> bool:
    """Return whether every line of the hunks ends in CRLF."""
    unended = hunks.count(b"\n\\ ")
    headers = hunks.count(b"\n@@") + 1
    return hunks.count(b"\r\n") == hunks.count(b"\n") - headers - 2 * unended
