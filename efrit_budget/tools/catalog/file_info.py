"""What the file system knows about files."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field

from efrit_budget.errors import Json
from efrit_budget.project.paths import OutsideError, meant_name, same_form, shown_name
from efrit_budget.project.project import Located, Project
from efrit_budget.results.body import Source, of_items
from efrit_budget.tools.base import Arguments, Hint, Outcome, Policy, Status, ToolContext

KINDS = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "folder",
    stat.S_IFLNK: "link",
    stat.S_IFIFO: "pipe",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
}
CONTENTS = {True: " binary", False: " text", None: ""}
SNIFFED_BYTES = 8192
MAX_PATHS = 1000


class FileInfoArguments(Arguments):
    """The arguments of `file_info`."""

    paths: Annotated[
        list[Annotated[str, Field(min_length=1)]],
        Field(min_length=1, max_length=MAX_PATHS),
    ]


class FileInfo:
    """Kind, size, time and mode of files, several at once."""

    name: ClassVar[str] = "file_info"
    description: ClassVar[str] = "Kind, size, modification time and mode of files and folders."
    arguments: ClassVar[type[Arguments]] = FileInfoArguments
    policy: ClassVar[Policy] = Policy.ALLOW
    has_effects: ClassVar[bool] = False
    hint: ClassVar[Hint | None] = Hint("files", tokens_each=30)

    def run(self, arguments: FileInfoArguments, context: ToolContext) -> Outcome:
        """Look each path up; one that cannot be looked up says why, and the others go on."""
        looks = list(_looks(arguments.paths, context))
        failed = sum("error" in look.facts for look in looks)
        items = [(_line(look.facts), look.facts) for look in looks]
        sources = tuple(look.source for look in looks if look.source is not None)
        body = replace(of_items("files", [(None, items)], failed=failed), sources=sources)
        if failed == len(looks):
            message = "none of the paths can be used"
            return Outcome(body=body, status=Status.ERROR, message=message)
        return Outcome(body=body)

    def compress(self, arguments: FileInfoArguments, outcome: Outcome) -> str:
        """How many files, and the first of them."""
        names = ", ".join(map(same_form, arguments.paths))
        size = sum(facts.get("size", 0) for facts in outcome.whole.item_data)
        return f"Looked at {len(arguments.paths)} paths ({size:,} bytes): {names}"[:500]


@dataclass(frozen=True)
class Look:
    """What was found at a path; a file's state is kept, so that a later page can compare."""

    facts: dict[str, Json]
    source: Source | None = None


def _looks(paths: list[str], context: ToolContext) -> Iterator[Look]:
    for path in paths:
        context.cancellation.check()
        try:
            yield _look_up(path, context.project)
        except OutsideError as error:
            yield Look({"path": same_form(path), "error": error.reason})
        except OSError as error:
            reason = _broken_link(path, context.root) or error.strerror or str(error)
            yield Look({"path": same_form(path), "error": reason})


def _broken_link(path: str, root: Path) -> str | None:
    """Where a link leads that leads nowhere."""
    link = root / meant_name(path)
    try:
        return f"a link to {shown_name(str(link.readlink()))}, which does not exist"
    except (OSError, ValueError):
        return None


def _look_up(path: str, project: Project) -> Look:
    """The facts of one path; of a link, those of what it leads to, under that name."""
    located = project.locate(path)
    found = project.stat(located)
    facts: dict[str, Json] = {
        "path": located.shown,
        "kind": KINDS.get(stat.S_IFMT(found.st_mode), "other"),
        "size": found.st_size,
        "modified": _moment(found.st_mtime),
        "mode": stat.filemode(found.st_mode),
    }
    if facts["kind"] == "file":
        facts["binary"] = _is_binary(project, located)
    if facts["path"] != same_form(path):
        facts["given"] = same_form(path)
    return Look(facts, Source(located.name, found.st_mtime_ns, found.st_size))


def _moment(seconds: float) -> str:
    """A time as text; one that no calendar reaches, in seconds as `date` takes them."""
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError):
        return f"@{seconds:.0f}"


def _is_binary(project: Project, located: Located) -> bool | None:
    """Whether a NUL stands near the beginning; None where the file cannot be read."""
    try:
        descriptor = project.open(located)
    except (OSError, OutsideError):
        return None
    try:
        return b"\0" in os.read(descriptor, SNIFFED_BYTES)
    except OSError:
        return None
    finally:
        os.close(descriptor)


def _line(facts: dict[str, Json]) -> str:
    if "error" in facts:
        return f"{facts['path']}: {facts['error']}"
    given = f" (given as {facts['given']})" if "given" in facts else ""
    content = CONTENTS[facts.get("binary")]
    moment = facts["modified"].replace("+00:00", "Z")
    kind, size, mode = facts["kind"], facts["size"], facts["mode"]
    return f"{facts['path']}{given}: {kind}{content}, {size:,} bytes, {moment}, {mode}"


TOOL = FileInfo()
