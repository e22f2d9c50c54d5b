"""Record the changes of a session: begin before the edit, end after it, show and undo."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from sqlite3 import Connection

from efrit_budget.changes import rows
from efrit_budget.changes.change import IN_FORCE, Change, ChangeError, ChangeKind, ChangeState, Role
from efrit_budget.changes.diffs import counts
from efrit_budget.changes.disk import missing_folders, read
from efrit_budget.changes.file_reports import state_on_disk
from efrit_budget.changes.file_states import FileStates, locate_all, read_files
from efrit_budget.changes.path_checks import check_path
from efrit_budget.changes.planned import PlannedChange
from efrit_budget.changes.redoing import prepare_redo
from efrit_budget.changes.rows import Beginning, Ending
from efrit_budget.changes.showing import ChangeContents, show_change
from efrit_budget.changes.undoing import prepare_undo
from efrit_budget.errors import ConflictError, JsonObject, field_error
from efrit_budget.project.paths import shown_name
from efrit_budget.project.project import Located, Project
from efrit_budget.storage.database import Database


class Journal:
    """The changes of one session."""

    def __init__(self, database: Database, project: Project, session_id: str) -> None:
        self._database = database
        self._project = project
        self._session_id = session_id

    # Beginning

    def begin(
        self, tool_use_id: str, tool: str, planned: Sequence[PlannedChange]
    ) -> list[JsonObject]:
        """Record changes before they are made, with the contents of their files; return them.

        Changes that the call began before and did not end are recorded anew if anything differs.
        """
        with self._database.reading() as connection:
            beginnings = [
                self._beginning(connection, f"files.{number}", one)
                for number, one in enumerate(planned)
            ]
        _require_distinct(beginnings)
        abandoned = ChangeState.ABANDONED
        with self._database.writing() as connection:
            known = rows.list_of_call(connection, self._session_id, tool_use_id)
            begun = [change for change in known if change.state is ChangeState.BEGUN]
            if known and not begun:
                raise ConflictError(
                    f"the changes of {tool_use_id!r} have ended; begin others under another "
                    "tool_use_id",
                    data={"tool_use_id": tool_use_id},
                )
            if [one.before_facts for one in begun] != [one.before_facts for one in beginnings]:
                for change in begun:
                    rows.set_state(connection, self._session_id, change.number, abandoned)
                rows.insert(connection, self._session_id, (tool_use_id, tool), beginnings)
            return [
                _begin_reply(change)
                for change in rows.list_of_call(connection, self._session_id, tool_use_id)
                if change.state is ChangeState.BEGUN
            ]

    def _beginning(self, connection: Connection, field: str, planned: PlannedChange) -> Beginning:
        """Check a planned change and read its file; raise, naming `field`, if it is impossible."""
        located = self._locate(f"{field}.path", planned.path)
        target = None if planned.to is None else self._locate(f"{field}.to", planned.to)
        if (planned.kind is ChangeKind.RENAME) != (target is not None):
            raise field_error(
                f"{field}.to", "a rename needs the new path, and only a rename takes one"
            )
        file = read(located)
        planned.check(field, located, file)
        if planned.kind in (ChangeKind.DELETE, ChangeKind.RENAME):
            if file is None:
                raise field_error(f"{field}.path", f"{located.shown}: there is no such file")
            self._require_no_link(f"{field}.path", located)
        if target is not None and read(target) is not None:
            raise field_error(f"{field}.to", f"{target.shown}: there is a file already")
        text = None if planned.buffer_text is None else planned.buffer_text.encode()
        return Beginning(
            kind=planned.kind,
            path=located.shown,
            file=shown_name(str(located.path)),
            moved_to=None if target is None else target.shown,
            moved_file=None if target is None else shown_name(str(target.path)),
            folders=missing_folders(self._project, target or located),
            mode=None if file is None else file.mode,
            contents={
                Role.BEFORE: rows.pack(connection, None if file is None else file.data),
                Role.TEXT_BEFORE: rows.pack(connection, text),
            },
        )

    def _locate(self, field: str, given: str) -> Located:
        checked = check_path(self._project, given)
        if checked.problem is not None or checked.located is None:
            raise field_error(field, f"{checked.path}: {checked.problem}")
        return checked.located

    def _require_no_link(self, field: str, located: Located) -> None:
        """Raise if the path is a link, which the change would replace instead of its target."""
        path = self._project.root.resolve() / located.given
        if path.is_symlink():
            raise field_error(
                field, f"{shown_name(located.given)}: a link to {located.shown}; name that file"
            )

    # Ending

    def end(
        self, tool_use_id: str, outcome: ChangeState, texts: Mapping[int, str | None]
    ) -> list[JsonObject]:
        """Record the contents after a call's changes, or that they were abandoned; return them."""
        with self._database.reading() as connection:
            endings = [
                self._ending(connection, change, texts.get(change.number))
                for change in self._begun(connection, tool_use_id, texts)
                if outcome is ChangeState.DONE
            ]
        with self._database.writing() as connection:
            begun = {change.number for change in self._begun(connection, tool_use_id, texts)}
            for ending in endings:
                if ending.change.number in begun:
                    rows.end(connection, self._session_id, ending)
            for number in begun if outcome is ChangeState.ABANDONED else ():
                rows.set_state(connection, self._session_id, number, outcome)
            changes = rows.list_of_call(connection, self._session_id, tool_use_id)
        return [end_reply(change) for change in changes]

    def _begun(
        self, connection: Connection, tool_use_id: str, texts: Mapping[int, str | None]
    ) -> list[Change]:
        """Return a call's unended changes; raise if it began none, or not all in `texts`."""
        known = rows.list_of_call(connection, self._session_id, tool_use_id)
        if not known:
            raise field_error("tool_use_id", f"nothing was begun under {tool_use_id!r}")
        unknown = set(texts) - {change.number for change in known}
        if unknown:
            listed = ", ".join(f"c{number}" for number in sorted(unknown))
            raise field_error("files", f"{listed} was not begun under {tool_use_id!r}")
        return [change for change in known if change.state is ChangeState.BEGUN]

    def _ending(self, connection: Connection, change: Change, text: str | None) -> Ending:
        files = read_files(locate_all(self._project, change))
        file = files[change.path_after]
        if change.kind is ChangeKind.RENAME and (file is None or files[change.path] is not None):
            raise ChangeError(
                f"{change.label}: {change.path} was not renamed to {change.moved_to}; "
                "end it as abandoned",
                data={"number": change.number, "path": change.path},
            )
        after = None if file is None else file.data
        text_after = None if text is None else text.encode()
        before = ChangeContents.load(connection, change)
        added, removed = counts(*replace(before, after=after, text_after=text_after).compared())
        contents = {
            Role.AFTER: rows.pack(connection, after),
            Role.TEXT_AFTER: rows.pack(connection, text_after),
        }
        return Ending(change, None if file is None else file.mode, contents, added, removed)

    # Showing

    def list_changes(self, *, open_only: bool) -> JsonObject:
        """Return the changes with the states of their files, oldest first, and the checkpoints."""
        with self._database.reading() as connection:
            changes = rows.list_from(connection, self._session_id)
            checkpoints = rows.list_checkpoints(connection, self._session_id)
        entries = [
            change.summary() | {"now": state}
            for change, state in FileStates(self._project, self._content).of_all(changes)
            if not open_only or change.state is ChangeState.BEGUN
        ]
        return {
            "changes": entries[::-1],
            "checkpoints": [checkpoint.summary() for checkpoint in checkpoints],
        }

    def show(self, number: int, most: int | None) -> JsonObject:
        """Return a change, its diff and the diff since the change, each up to `most` characters."""
        with self._database.reading() as connection:
            change = rows.get(connection, self._session_id, number)
            changes_after = rows.list_from(connection, self._session_id, number + 1)
            contents = ChangeContents.load(connection, change)
        shown = show_change(self._project, change, contents, most)
        states = FileStates(self._project, self._content)
        return shown | {"now": states.of_one(change, changes_after)}

    def _content(self, sha256: str | None) -> bytes | None:
        with self._database.reading() as connection:
            return rows.get_content(connection, sha256)

    # Undoing

    def undo(self, number: int, *, force: bool, by_person: bool) -> JsonObject:
        """Restore a file to its content before a change; `force` discards later changes.

        If the person does it, `to_report` says of the change that the model is to be told.
        """
        states = FileStates(self._project, self._content)
        undo = prepare_undo(self._database, states, self._session_id, number, force=force)
        return self._with_state(undo.run(self._database, by_person=by_person))

    def redo(self, number: int, *, force: bool, by_person: bool) -> JsonObject:
        """Make an undone change again; `force` discards later changes, `by_person` as in `undo`."""
        redo = prepare_redo(self._database, self._project, self._session_id, number, force=force)
        return self._with_state(redo.run(self._database, by_person=by_person))

    def _with_state(self, reply: JsonObject) -> JsonObject:
        """Return the reply with the stamp and the time of its file."""
        return reply | state_on_disk(self._project, self._project.locate(reply["file"]))

    def set_reported(self, numbers: Sequence[int]) -> None:
        """Store that what the person did with these changes was reported to the model."""
        with self._database.writing() as connection:
            rows.set_reported(connection, self._session_id, numbers)

    def checkpoint(self, label: str) -> JsonObject:
        """Record a checkpoint: a point of the session after which all changes can be undone."""
        with self._database.writing() as connection:
            return rows.insert_checkpoint(connection, self._session_id, label).summary()

    def since(self, name: str) -> list[int]:
        """Return the numbers of the changes to undo to return to a checkpoint, newest first."""
        with self._database.reading() as connection:
            checkpoints = rows.list_checkpoints(connection, self._session_id)
            known = {f"k{one.number}": one.after for one in checkpoints}
            if name not in known:
                listed = ", ".join(map(_shown, checkpoints)) or "none"
                raise field_error("checkpoint", f"there is no {name}; there are: {listed}")
            changes = rows.list_from(connection, self._session_id, known[name] + 1)
        return [change.number for change in reversed(changes) if change.state in IN_FORCE]


def _shown(checkpoint: rows.Checkpoint) -> str:
    """Return the name of a checkpoint, and its label if it has one."""
    return f"k{checkpoint.number}{f' ({checkpoint.label})' if checkpoint.label else ''}"


def _require_distinct(beginnings: Sequence[Beginning]) -> None:
    """Raise if two changes have a path in common."""
    seen: set[str] = set()
    for number, beginning in enumerate(beginnings):
        for path in filter(None, (beginning.path, beginning.moved_to)):
            if path in seen:
                raise field_error(f"files.{number}", f"{path} is named twice")
            seen.add(path)


def _begin_reply(change: Change) -> JsonObject:
    before = change.hashes.get(Role.BEFORE)
    return {
        "number": change.number,
        "path": change.path,
        "file": change.file,
        "exists": before is not None,
        "sha256": before,
    }


def end_reply(change: Change) -> JsonObject:
    """Return the reply about a change that has ended."""
    return {
        "number": change.number,
        "state": str(change.state),
        "before": change.hashes.get(Role.BEFORE),
        "after": change.hashes.get(Role.AFTER),
    }
