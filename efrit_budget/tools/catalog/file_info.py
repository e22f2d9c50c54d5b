"""The tool `file_info`: returns metadata of files and folders."""

import os
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from pydantic import Field

from efrit_budget.errors import JsonObject
from efrit_budget.project.paths import OutsideError, meant_name, same_form, shown_name
from efrit_budget.project.project import Located, Project, open_beneath
from efrit_budget.results.body import Source, of_items
from efrit_budget.tools.base import Arguments, Hint, Outcome, Status, Tool, ToolContext
from efrit_budget.tools.layout.files import moment

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

Look = tuple[JsonObject, Source | None]
"""The metadata of a path and its source; or an error at the path, and None."""


class FileInfoArguments(Arguments):
    """The arguments of `file_info`."""

    paths: Annotated[
        list[Annotated[str, Field(min_length=1)]],
        Field(min_length=1, max_length=MAX_PATHS),
    ]


class FileInfo(Tool):
    """Returns kind, size, time and mode of files."""

    name = "file_info"
    description = "Kind, size, modification time and mode of files and folders."
    arguments = FileInfoArguments
    hint = Hint("files", tokens_each=30)

    def run(self, arguments: FileInfoArguments, context: ToolContext) -> Outcome:
        """Return the metadata of each path; one that cannot be looked up has an error."""
        looks = list(_look_up_all(arguments.paths, context))
        failed = sum("error" in facts for facts, _ in looks)
        items = [(_line(facts), facts) for facts, _ in looks]
        sources = tuple(source for _, source in looks if source is not None)
        body = replace(of_items("files", [(None, items)], failed=failed), sources=sources)
        if failed == len(looks):
            message = "none of the paths can be used"
            return Outcome(body=body, status=Status.ERROR, message=message)
        return Outcome(body=body)

    def compress(self, arguments: FileInfoArguments, outcome: Outcome) -> str:
        """Return the number of paths, their size together, and the first ones."""
        names = ", ".join(map(same_form, arguments.paths))
        size = sum(facts.get("size", 0) for facts in outcome.whole.item_data)
        return f"Looked at {len(arguments.paths)} paths ({size:,} bytes): {names}"[:500]


def _look_up_all(paths: list[str], context: ToolContext) -> Iterator[Look]:
    for path in paths:
        context.cancellation.check()
        try:
            yield _look_up(path, context.project)
        except OutsideError as error:
            yield {"path": same_form(path), "error": error.reason}, None
        except OSError as error:
            reason = _broken_link(path, context.root) or error.strerror or str(error)
            yield {"path": same_form(path), "error": reason}, None


def _broken_link(path: str, root: Path) -> str | None:
    """Return a text on the target of a path that is a broken link, or None if it is no link."""
    link = root / meant_name(path)
    try:
        return f"a link to {shown_name(str(link.readlink()))}, which does not exist"
    except (OSError, ValueError):
        return None


def _look_up(path: str, project: Project) -> Look:
    """Return the metadata of one path, following links."""
    located = project.locate(path)
    found = project.stat(located)
    facts: JsonObject = {
        "path": located.shown,
        "kind": KINDS.get(stat.S_IFMT(found.st_mode), "other"),
        "size": found.st_size,
        "modified": moment(found.st_mtime),
        "mode": stat.filemode(found.st_mode),
    }
    if facts["kind"] == "file":
        facts["binary"] = _is_binary(located)
    if facts["path"] != same_form(path):
        facts["given"] = same_form(path)
    return facts, Source(located.name, found.st_mtime_ns, found.st_size)


def _is_binary(located: Located) -> bool | None:
    """Return whether the beginning of a file contains NUL, or None if it cannot be read."""
    try:
        descriptor = open_beneath(located)
    except (OSError, OutsideError):
        return None
    try:
        return b"\0" in os.read(descriptor, SNIFFED_BYTES)
    except OSError:
        return None
    finally:
        os.close(descriptor)


def _line(facts: JsonObject) -> str:
    if "error" in facts:
        return f"{facts['path']}: {facts['error']}"
    note = f" (given as {facts['given']})" if "given" in facts else ""
    content = CONTENTS[facts.get("binary")]
    modified = facts["modified"].replace("+00:00", "Z")
    kind, size, mode = facts["kind"], facts["size"], facts["mode"]
    return f"{facts['path']}{note}: {kind}{content}, {size:,} bytes, {modified}, {mode}"


TOOL = FileInfo()
