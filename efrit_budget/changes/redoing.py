"""Make an undone change again: restore its file to the content after it."""

from dataclasses import dataclass

from efrit_budget.changes import disk, rows
from efrit_budget.changes.change import (
    Change,
    ChangedSinceError,
    ChangeError,
    ChangeState,
)
from efrit_budget.changes.diffs import Version, unified
from efrit_budget.changes.disk import DiskFile
from efrit_budget.changes.file_states import hashes_of, locate_all, read_files
from efrit_budget.changes.showing import ChangeContents
from efrit_budget.changes.undoing import restored_reply
from efrit_budget.errors import JsonObject
from efrit_budget.project.project import Located, Project
from efrit_budget.storage.database import Database


@dataclass(frozen=True)
class Redo:
    """An undone change that is about to be made again.

    As with an undo, the files are restored before the state is set, so that an interrupted redo
    can be repeated.
    """

    session_id: str
    change: Change
    contents: ChangeContents
    located: dict[str, Located]
    files: dict[str, DiskFile | None]

    def run(self, database: Database, *, by_person: bool) -> JsonObject:
        """Restore the files, then mark the change as done."""
        change = self.change
        with database.writing() as connection:
            if rows.get(connection, self.session_id, change.number).state != change.state:
                raise ChangeError(
                    f"{change.label} was made again this very moment; look at it again",
                    data={"number": change.number},
                )
            disk_changed = self._restore()
            done = ChangeState.DONE
            rows.set_restored(connection, self.session_id, change.number, done, by_person=by_person)
        on_disk = disk_changed or change.before != change.after
        return restored_reply(change, ChangeState.DONE, self.contents, self.located, disk=on_disk)

    def _restore(self) -> bool:
        """Restore the files; return whether anything on disk had to change."""
        change, after = self.change, self.contents.after
        here, there = self.files[change.path], self.files[change.path_after]
        is_moved = change.path_after != change.path
        if is_moved and here is not None and there is None and here.data == after:
            source, target = self.located[change.path], self.located[change.path_after]
            disk.move(source, target, self._mode(here), here)
            return True
        was_written = False
        if after is not None:
            scratch = f".efrit-redo-{self.session_id}-{change.label}"
            mode, target = self._mode(there or here), self.located[change.path_after]
            was_written = disk.restore(target, after, mode, there, scratch)
        if here is not None and (is_moved or after is None):
            disk.remove(self.located[change.path], here)
            return True
        return was_written

    def _mode(self, file: DiskFile | None) -> int:
        """Return the permissions after the change, or the file's if they were changed since."""
        return disk.mode_to_restore(file, self.change.mode_before, self.change.mode_after)


def prepare_redo(
    database: Database, project: Project, session_id: str, number: int, *, force: bool
) -> Redo:
    """Return the redo of a change; raise if it is not undone, or loses later work."""
    with database.reading() as connection:
        change = rows.get(connection, session_id, number)
        contents = ChangeContents.load(connection, change)
    if change.state is not ChangeState.UNDONE:
        reason = "is not undone" if change.state is ChangeState.DONE else f"was {change.state} only"
        raise ChangeError(f"{change.label} of {change.path} {reason}", data={"number": number})
    if change.added is None:
        raise ChangeError(
            f"{change.label} of {change.path} cannot be made again: its end was not recorded",
            data={"number": number},
        )
    located = locate_all(project, change)
    redo = Redo(session_id, change, contents, located, read_files(located))
    if not force:
        _require_as_undone(redo)
    return redo


def _require_as_undone(redo: Redo) -> None:
    """Raise unless the files are as the undo of the change, or an interrupted redo, left them."""
    change = redo.change
    hashes = hashes_of(redo.files)
    half_redone = {**change.before, change.path_after: change.after[change.path_after]}
    if hashes in (change.before, change.after, half_redone):
        return
    left = dict.fromkeys(redo.files) | {change.path: redo.contents.before}
    now = {path: None if file is None else file.data for path, file in redo.files.items()}
    since = "".join(unified(Version(path, left[path]), Version(path, now[path])) for path in now)
    raise ChangedSinceError(
        f"{change.label}: {change.path} has changed since it was undone; nothing was done",
        data={"number": change.number, "path": change.path, "since": since},
    )
