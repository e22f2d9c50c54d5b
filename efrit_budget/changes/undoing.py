"""Restore a file to its content before a change."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePath

from efrit_budget.changes import disk, rows
from efrit_budget.changes.change import (
    Change,
    ChangedSinceError,
    ChangeError,
    ChangeState,
    Role,
)
from efrit_budget.changes.disk import DiskFile
from efrit_budget.changes.file_states import (
    UNDONE,
    FileStates,
    hashes_of,
    locate_all,
    read_files,
)
from efrit_budget.changes.showing import ChangeContents, diff_since
from efrit_budget.errors import JsonObject
from efrit_budget.project.paths import meant_name, shown_name
from efrit_budget.project.project import Located, Project
from efrit_budget.storage.database import Database


@dataclass(frozen=True)
class Undo:
    """A change that is about to be undone.

    The files on disk are restored before the change is marked as undone. So an undo that was
    interrupted can be repeated, and goes on from the files as it left them.
    """

    session_id: str
    project: Project
    change: Change
    contents: ChangeContents
    located: dict[str, Located]
    files: dict[str, DiskFile | None]

    def run(self, database: Database, *, by_person: bool) -> JsonObject:
        """Restore the file, then mark the change as undone."""
        with database.writing() as connection:
            now = rows.get(connection, self.session_id, self.change.number)
            if now.state != self.change.state:
                raise ChangeError(
                    f"{self.change.label} was ended or undone this very moment; look at it again",
                    data={"number": self.change.number},
                )
            disk_changed = self._restore()
            created = {
                folder
                for change in rows.list_from(connection, self.session_id)
                if change.state is ChangeState.UNDONE
                for folder in change.folders
            }
            self._remove_empty_folders(created.union(self.change.folders))
            undone = ChangeState.UNDONE
            rows.set_restored(connection, self.session_id, now.number, undone, by_person=by_person)
        change = self.change
        on_disk = change.state is ChangeState.DONE and change.before != change.after
        return restored_reply(
            change, ChangeState.UNDONE, self.contents, self.located, disk=disk_changed or on_disk
        )

    def _restore(self) -> bool:
        """Restore the files; return whether anything on disk had to change."""
        change, before = self.change, self.contents.before
        here, moved = self.files[change.path], self.files[change.path_after]
        was_moved = change.path_after != change.path and moved is not None
        if before is None:
            return self._remove(change.path, here)
        if was_moved and here is None and moved is not None and moved.data == before:
            source, target = self.located[change.path_after], self.located[change.path]
            disk.move(source, target, self._mode(moved), moved)
            return True
        scratch = f".efrit-undo-{self.session_id}-{change.label}"
        mode = self._mode(here or moved)
        was_written = disk.restore(self.located[change.path], before, mode, here, scratch)
        return (was_moved and self._remove(change.path_after, moved)) or was_written

    def _remove(self, path: str, file: DiskFile | None) -> bool:
        if file is not None:
            disk.remove(self.located[path], file)
        return file is not None

    def _mode(self, file: DiskFile | None) -> int:
        """Return the permissions to restore: the old ones, or the file's if changed since."""
        return disk.mode_to_restore(file, self.change.mode_after, self.change.mode_before)

    def _remove_empty_folders(self, created: set[str]) -> None:
        """Remove those parent folders of the file that are in `created` and empty."""
        for folder in PurePath(meant_name(self.change.path_after)).parents:
            if (name := shown_name(str(folder))) in created:
                located = self.project.locate(name)
                if located.shown == name:
                    disk.remove_empty_folder(located)


def restored_reply(
    change: Change,
    state: ChangeState,
    contents: ChangeContents,
    located: Mapping[str, Located],
    *,
    disk: bool,
) -> JsonObject:
    """Return the reply about a change that is in `state` now, undone or made again.

    `disk` says whether anything on disk had to change for that.
    """
    if state is ChangeState.UNDONE:
        path, role = change.path, Role.BEFORE
        data, text = contents.before, contents.text_before
    else:
        path, role = change.path_after, Role.AFTER
        data, text = contents.after, contents.text_after
    return {
        "number": change.number,
        "path": change.path,
        "to": change.moved_to,
        "state": str(state),
        "file": shown_name(str(located[path].path)),
        "exists": data is not None,
        "sha256": change.hashes.get(role),
        "disk": disk,
        "buffer_text": None if text is None else text.decode(),
    }


def prepare_undo(
    database: Database, states: FileStates, session_id: str, number: int, *, force: bool
) -> Undo:
    """Return the undo of a change; raise if it is undone, or loses later work without `force`.

    A later change does not count if its files are as they were before it: a command, or the
    person, has put them back.
    """
    with database.reading() as connection:
        change = rows.get(connection, session_id, number)
        changes_after = rows.list_from(connection, session_id, number + 1)
        contents = ChangeContents.load(connection, change)
    if change.state in (ChangeState.UNDONE, ChangeState.ABANDONED):
        is_undone = change.state is ChangeState.UNDONE
        abandoned = "was abandoned: it changed nothing, or what it changed was put back"
        reason = "is undone already" if is_undone else abandoned
        raise ChangeError(f"{change.label} of {change.path} {reason}", data={"number": number})
    located = locate_all(states.project, change)
    undo = Undo(session_id, states.project, change, contents, located, read_files(located))
    if not force:
        _require_last(change, states.of_all(changes_after))
        _require_as_left(undo)
    return undo


def _require_last(change: Change, states_after: Iterable[tuple[Change, str]]) -> None:
    """Raise if one of the later changes, given newest first, is of this file and still stands."""
    later = [
        one.label
        for one, state in states_after
        if state != UNDONE and not set(one.paths).isdisjoint(change.paths)
    ]
    if later:
        labels = ", ".join(later)
        raise ChangedSinceError(
            f"{change.label} of {change.path} is not the last of that file: undo {labels} first",
            data={"number": change.number, "path": change.path, "since": None, "later": labels},
        )


def _require_as_left(undo: Undo) -> None:
    """Raise unless the files are as the change, or an interrupted undo of the change, left them."""
    change = undo.change
    since = diff_since(change, undo.contents, undo.files)
    hashes = hashes_of(undo.files)
    is_done = change.state is ChangeState.DONE
    half_undone = {**change.after, change.path: change.before[change.path]} if is_done else None
    if not since or hashes in (change.before, half_undone):
        return
    if is_done:
        reason = "is not as the change left it"
    else:
        reason = "was begun and its end was not recorded, so its content may be of another edit"
    raise ChangedSinceError(
        f"{change.label}: {change.path} {reason}; nothing was undone",
        data={"number": change.number, "path": change.path, "since": since},
    )
