"""Parse git's patches and lists of changed files.

Patches are made with `PATCH_OPTIONS`: names hold no line ends, and every line of a file's content
begins with a sign, so that a line without a sign is git's own.
"""

from dataclasses import dataclass, replace

from efrit_budget.project.git.names import unquote

CHANGE_OPTIONS = (
    *("--no-ext-diff", "--no-textconv", "--no-color", "--no-prefix", "--relative"),
    *("--ignore-submodules=dirty", "--submodule=short", "--find-renames"),
)
PATCH_OPTIONS = (*CHANGE_OPTIONS, "--patch")
COUNT_OPTIONS = (*CHANGE_OPTIONS, "--raw", "--numstat")

UNMERGED = b"\n* Unmerged path "
FILE = b"\ndiff --"
HUNK = b"\n@@"
PLAIN_HEAD = (b"--- ", b"+++ ", b"similarity ")
INDEX = b"index "
BINARY = (b"Binary files ", b"GIT binary patch")
MEANINGS = {
    b"old mode ": ("old_mode", ""),
    b"new mode ": ("mode", ""),
    b"new file mode ": ("mode", "A"),
    b"deleted file mode ": ("old_mode", "D"),
    b"rename from ": ("old_path", "R"),
    b"rename to ": ("path", "R"),
    b"copy from ": ("old_path", "C"),
    b"copy to ": ("path", "C"),
}
"""By the start of a header line: the field that it sets, and the status that it implies."""
LINK, SUBMODULE = "120000", "160000"


@dataclass(frozen=True)
class FileChange:
    """A changed file, with hunks if they were requested."""

    path: str
    """The path from the project's root, without git's quotes."""
    status: str = "M"
    """A: added, C: copied, D: deleted, M: modified, R: renamed, T: of another kind, U: unmerged."""
    old_path: str | None = None
    additions: int = 0
    deletions: int = 0
    binary: bool = False
    old_mode: str = ""
    mode: str = ""
    hunks: bytes = b""

    @property
    def is_submodule(self) -> bool:
        """Return whether the path is, or was, a submodule."""
        return SUBMODULE in (self.mode, self.old_mode)


def changes_of_patch(printed: bytes, combined_status: str = "U") -> list[FileChange]:
    """Return the changed files of a patch, sorted by path.

    A file that differs from several parents at once gets the status `combined_status`.
    """
    changes = []
    for number, part in enumerate((b"\n" + printed).split(FILE)):
        whole, *unmerged = part.split(UNMERGED)
        if number:  # only unmerged files come before the first one
            changes.append(_change(whole, combined_status))
        changes += [FileChange(unquote(path.rstrip(b"\n")), "U") for path in unmerged]
    return _with_kinds_joined(sorted(changes, key=lambda change: change.path))


def _with_kinds_joined(changes: list[FileChange]) -> list[FileChange]:
    """Return changes in which a deletion and an addition of one path are one, of status T."""
    kept: list[FileChange] = []
    for new in changes:
        old = kept[-1] if kept else None
        if old is not None and (old.path, old.status, new.status) == (new.path, "D", "A"):
            kept[-1] = replace(
                new,
                status="T",
                old_mode=old.old_mode,
                additions=old.additions + new.additions,
                deletions=old.deletions + new.deletions,
                binary=old.binary or new.binary,
                hunks=old.hunks + new.hunks,
            )
        else:
            kept.append(new)
    return kept


def _change(part: bytes, combined_status: str) -> FileChange:
    """Return the change that one file's part of a patch describes."""
    end = part.find(HUNK)
    head, hunks = part, b""
    if end >= 0:
        head, hunks = part[:end], part[end + 1 :].removesuffix(b"\n") + b"\n"
    first, *others = head.split(b"\n")
    kind, _, names = first.partition(b" ")
    is_combined = kind != b"git"
    path = unquote(names) if is_combined else unquote(names[: len(names) // 2])
    facts: dict[str, str] = {"path": path}
    for line in others:
        if not line.startswith(PLAIN_HEAD):
            facts.update(_facts(line))
    if is_combined:
        facts.setdefault("status", combined_status)
    added, deleted = _counts(hunks) if hunks else (0, 0)
    binary = bool(facts.pop("binary", ""))
    return FileChange(**facts, additions=added, deletions=deleted, binary=binary, hunks=hunks)


def _facts(line: bytes) -> dict[str, str]:
    """Return the fields of the change that a header line of a file sets."""
    if line.startswith(BINARY):
        return {"binary": "yes"}
    if line.startswith(INDEX):
        mode = line.split(b" ")[2:]
        return {"mode": mode[0].decode()} if mode else {}
    for beginning, (key, status) in MEANINGS.items():
        if line.startswith(beginning):
            value = unquote(line[len(beginning) :])
            return {key: value, "status": status} if status else {key: value}
    return {}


def _counts(hunks: bytes) -> tuple[int, int]:
    """Return the numbers of added and of deleted lines in hunks."""
    parents = len(hunks) - len(hunks.lstrip(b"@")) - 1
    if parents == 1:
        return hunks.count(b"\n+"), hunks.count(b"\n-")
    signs = [line[:parents] for line in hunks.split(b"\n") if not line.startswith(b"@@")]
    return sum(b"+" in sign for sign in signs), sum(b"-" in sign for sign in signs)


def whole_lines(printed: bytes) -> bytes:
    """Return a truncated patch up to its last whole line."""
    return printed[: printed.rfind(b"\n") + 1]


def changes_of_counts(printed: bytes) -> list[FileChange]:
    """Return the changed files that git prints with `COUNT_OPTIONS`, sorted by path."""
    lines = printed.split(b"\n")
    changes = [_raw(line) for line in lines if line.startswith(b":")]
    counts = [line.split(b"\t", 2) for line in lines if line and not line.startswith(b":")]
    counted = [
        replace(change, binary=added == b"-", additions=_number(added), deletions=_number(deleted))
        for change, (added, deleted, _) in zip(changes, counts, strict=False)
    ]
    return _without_doubles(sorted(counted, key=lambda change: change.path))


def _raw(line: bytes) -> FileChange:
    """Return the change in a line of git's raw list: modes, hashes, status and names."""
    head, *names = line.split(b"\t")
    modes = [mode.decode() for mode in head.lstrip(b":").split(b" ")]
    status = modes[-1][:1]
    old_path = unquote(names[0]) if len(names) > 1 else None
    old_mode, mode = (found if found.strip("0") else "" for found in modes[:2])
    if status == "M" and old_mode == mode:
        old_mode = ""
    return FileChange(unquote(names[-1]), status, old_path, old_mode=old_mode, mode=mode)


def _number(count: bytes) -> int:
    return int(count) if count.isdigit() else 0


def _without_doubles(changes: list[FileChange]) -> list[FileChange]:
    """Return one change per file; join an unmerged file's two entries."""
    kept: list[FileChange] = []
    for change in changes:
        if kept and kept[-1].path == change.path and kept[-1].status == "U":
            kept[-1] = replace(change, status="U")
        else:
            kept.append(change)
    return kept
