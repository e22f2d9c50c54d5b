"""Show a change: its diff, and how its file changed later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from sqlite3 import Connection

from efrit_budget.changes import rows
from efrit_budget.changes.change import IN_FORCE, Change, ChangeState, Role
from efrit_budget.changes.diffs import Version, as_buffer, unified
from efrit_budget.changes.disk import DiskFile
from efrit_budget.changes.file_states import locate_all, read_files
from efrit_budget.errors import JsonObject
from efrit_budget.project.project import Project


@dataclass(frozen=True)
class ChangeContents:
    """The contents of a change's file and of its buffer, before and after."""

    before: bytes | None
    after: bytes | None
    text_before: bytes | None
    text_after: bytes | None

    @classmethod
    def load(cls, connection: Connection, change: Change) -> ChangeContents:
        """Return the stored contents of a change."""
        roles = (Role.BEFORE, Role.AFTER, Role.TEXT_BEFORE, Role.TEXT_AFTER)
        return cls(*(rows.get_content(connection, change.hashes.get(role)) for role in roles))

    def compared(self) -> tuple[bytes | None, bytes | None]:
        """Return the old and new content: the buffer's if it was modified, else the file's."""
        if self.text_before is None and self.text_after is None:
            return self.before, self.after
        old = as_buffer(self.before) if self.text_before is None else self.text_before
        new = as_buffer(self.after) if self.text_after is None else self.text_after
        return old, new


def show_change(
    project: Project, change: Change, contents: ChangeContents, most: int | None
) -> JsonObject:
    """Return a change, its diff and the diff since the change, each cut to `most` characters."""
    later = None
    if change.state in IN_FORCE:
        files = read_files(locate_all(project, change))
        later = diff_since(change, contents, files) or None
    texts = {
        "diff": _diff(change, contents),
        "since": later,
        "buffer_text_before": _decode(contents.text_before),
        "buffer_text_after": _decode(contents.text_after),
    }
    return {
        **change.summary(),
        "file": change.file,
        "before": change.hashes.get(Role.BEFORE),
        "after": change.hashes.get(Role.AFTER),
        **{name: None if text is None else text[:most] for name, text in texts.items()},
        "cut": most is not None and any(len(text or "") > most for text in texts.values()),
    }


def _diff(change: Change, contents: ChangeContents) -> str:
    """Return the diff of a change, empty if its end was never recorded."""
    if change.added is None:
        return ""
    old, new = contents.compared()
    return unified(Version(change.path, old), Version(change.path_after, new))


def diff_since(
    change: Change, contents: ChangeContents, files: Mapping[str, DiskFile | None]
) -> str:
    """Return the diff from what a change left to the files on disk, empty if they are equal.

    A change that did not end counts as not made. If the change left an unsaved buffer, the file
    may have been saved since: it is compared with the buffer's text, unless it is unchanged.
    """
    now = {path: None if file is None else file.data for path, file in files.items()}
    if change.state is not ChangeState.DONE:
        left = {change.path: contents.before}
    elif contents.text_after is None or now[change.path_after] == contents.after:
        left = {change.path_after: contents.after}
    else:
        left = {change.path_after: contents.text_after}
        now[change.path_after] = as_buffer(now[change.path_after])
    return "".join(unified(Version(path, left.get(path)), Version(path, now[path])) for path in now)


def _decode(data: bytes | None) -> str | None:
    return None if data is None else data.decode()
