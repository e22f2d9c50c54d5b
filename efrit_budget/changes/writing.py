"""Make the changes of a tool call on disk: all of them, or none."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from efrit_budget.changes import disk, rows
from efrit_budget.changes.change import Change, ChangeError, ChangeKind, ChangeState
from efrit_budget.changes.disk import DiskFile
from efrit_budget.changes.file_reports import state_on_disk
from efrit_budget.changes.file_states import locate_all
from efrit_budget.changes.journal import Journal, end_reply
from efrit_budget.changes.planned import PlannedWrite, changed_since
from efrit_budget.changes.showing import ChangeContents
from efrit_budget.errors import ConflictError, EfritError, JsonObject
from efrit_budget.project.paths import shown_name
from efrit_budget.project.project import Located, Project
from efrit_budget.storage.database import Database

SCRATCH = ".efrit-write-"


class Writer:
    """Makes the changes of one session."""

    def __init__(self, database: Database, project: Project, session_id: str) -> None:
        self._database = database
        self._project = project
        self._session_id = session_id
        self._journal = Journal(database, project, session_id)

    def write(
        self, tool_use_id: str, tool: str, planned: Sequence[PlannedWrite]
    ) -> list[JsonObject]:
        """Make the changes of a call, all of them or none, and return them with their files.

        Called again for a call that has ended, return its changes; for one that was interrupted,
        finish it.
        """
        if not self._of_call(tool_use_id):
            self._journal.begin(tool_use_id, tool, planned)
        changes = self._of_call(tool_use_id)
        if any(change.state is ChangeState.ABANDONED for change in changes):
            raise ChangeError(f"the changes of {tool_use_id!r} failed before; use another id")
        begun = [change for change in changes if change.state is ChangeState.BEGUN]
        if begun:
            if len(begun) != len(planned):
                raise ConflictError(f"{tool_use_id!r} began {len(begun)} changes; send those again")
            pairs = list(zip(begun, planned, strict=True))
            self._write_all(pairs)
            texts = {change.number: one.text_after for change, one in pairs}
            self._journal.end(tool_use_id, ChangeState.DONE, texts)
        return [self._reply(change) for change in self._of_call(tool_use_id)]

    def _of_call(self, tool_use_id: str) -> list[Change]:
        with self._database.reading() as connection:
            return rows.list_of_call(connection, self._session_id, tool_use_id)

    def _write_all(self, pairs: Sequence[tuple[Change, PlannedWrite]]) -> None:
        """Make these changes on disk; if one fails, undo the others and abandon all."""
        made: list[Change] = []
        try:
            for change, planned in pairs:
                self._prepare(change, planned).run()
                made.append(change)
        except EfritError as error:
            self._take_back(pairs[len(made)][0])  # of the one that failed, folders may be left
            left = [name for name in map(self._take_back, reversed(made)) if name is not None]
            self._abandon([change for change, _ in pairs])
            more = f". But these could not be put back: {', '.join(left)}" if left else ""
            raise type(error)(error.message + more, data=error.data) from error

    def _prepare(self, change: Change, planned: PlannedWrite) -> "Write":
        with self._database.reading() as connection:
            before = ChangeContents.load(connection, change).before
        located = locate_all(self._project, change)
        return Write(change, planned, before, located, _scratch(self._session_id, change))

    def _take_back(self, change: Change) -> str | None:
        """Restore the file of a change; return its path and the reason if that is impossible."""
        try:
            self._journal.undo(change.number, force=True, by_person=False)
        except EfritError as error:
            return f"{change.path} ({error.message})"
        return None

    def _abandon(self, changes: Sequence[Change]) -> None:
        with self._database.writing() as connection:
            for change in changes:
                rows.set_state(connection, self._session_id, change.number, ChangeState.ABANDONED)

    def _reply(self, change: Change) -> JsonObject:
        place = locate_all(self._project, change)[change.path_after]
        return end_reply(change) | {
            "path": change.path_after,
            "file": shown_name(str(place.path)),
            **state_on_disk(self._project, place),
        }

    def remove_scratch(self) -> None:
        """Remove the files that an interrupted write left beside those that it was to replace."""
        with self._database.reading() as connection:
            changes = rows.list_from(connection, self._session_id)
        for change in changes:
            if change.state is ChangeState.BEGUN:
                with suppress(EfritError):
                    place = self._project.locate(change.path)
                    disk.remove_scratch(place, _scratch(self._session_id, change))


@dataclass(frozen=True)
class Write:
    """One change that is about to be made on disk.

    A write that was interrupted can be repeated: what is made already is left as it is.
    """

    change: Change
    planned: PlannedWrite
    before: bytes | None
    located: dict[str, Located]
    scratch: str

    def run(self) -> None:
        """Make the change; raise if the file is neither as before nor as after the change."""
        match self.change.kind:
            case ChangeKind.DELETE:
                self._delete()
            case ChangeKind.RENAME:
                self._rename()
            case _:
                self._edit()

    def _edit(self) -> None:
        if self.planned.replacement is None:
            return
        after = self.planned.replacement.applied(self.before or b"")
        place = self.located[self.change.path]
        now = disk.read(place)
        if now is None or now.data != after:
            self._require_before(now)
            disk.put(place, after, None if now is None else now.mode, now, self.scratch)

    def _delete(self) -> None:
        place = self.located[self.change.path]
        now = disk.read(place)
        if now is not None:
            self._require_before(now)
            disk.remove(place, now)

    def _rename(self) -> None:
        source, target = (self.located[path] for path in self.change.paths)
        now, there = disk.read(source), disk.read(target)
        if now is not None:
            self._require_before(now)
            disk.move(source, target, now.mode, now)
        elif there is None or there.data != self.before:
            raise changed_since(source)

    def _require_before(self, now: DiskFile | None) -> None:
        if (None if now is None else now.data) != self.before:
            raise changed_since(self.located[self.change.path])


def _scratch(session_id: str, change: Change) -> str:
    """Return the name under which the new content of a change is written before it is renamed."""
    return f"{SCRATCH}{session_id}-{change.label}"
