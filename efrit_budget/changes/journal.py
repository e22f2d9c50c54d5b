"""Record changes of a session: begin before the edit, end after it."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from efrit_budget.changes import rows
from efrit_budget.changes.change import IN_FORCE, Change, Kind, Role, State
from efrit_budget.changes.diffs import counts
from efrit_budget.changes.disk import missing_folders, read
from efrit_budget.changes.errors import ChangeError
from efrit_budget.changes.images import content, image
from efrit_budget.changes.places import place_of
from efrit_budget.changes.rows import Beginning, Ending
from efrit_budget.changes.showing import Held, shown
from efrit_budget.changes.standing import Standings, found_at, places
from efrit_budget.changes.undoing import looked_at
from efrit_budget.errors import ConflictError, Json, field_error
from efrit_budget.project.paths import shown_name
from efrit_budget.project.project import Located, Project
from efrit_budget.storage.database import Database


@dataclass(frozen=True)
class Wanted:
    """A file that a tool is about to change."""

    path: str
    kind: Kind
    to: str | None
    buffer_text: str | None


class Journal:
    """Records and undoes the changes of one session."""

    def __init__(self, database: Database, project: Project, session_id: str) -> None:
        self._database = database
        self._project = project
        self._session_id = session_id

    # Beginning

    def begin(self, tool_use_id: str, tool: str, wanted: Sequence[Wanted]) -> list[Json]:
        """Keep what files hold before they are changed."""
        with self._database.reading() as connection:
            beginnings = [
                self._beginning(connection, number, one) for number, one in enumerate(wanted)
            ]
        _require_distinct(beginnings)
        with self._database.writing() as connection:
            known = rows.of_use(connection, self._session_id, tool_use_id)
            unfinished = [change for change in known if change.state is State.BEGUN]
            if known and not unfinished:
                raise _end_reply(tool_use_id)
            if not _is_same_begin(unfinished, beginnings):
                for change in unfinished:
                    rows.set_state(connection, self._session_id, change.number, State.ABANDONED)
                rows.add(connection, self._session_id, (tool_use_id, tool), beginnings)
            return [
                _begin_reply(change)
                for change in rows.of_use(connection, self._session_id, tool_use_id)
                if change.state is State.BEGUN
            ]

    def _beginning(self, connection: sqlite3.Connection, number: int, wanted: Wanted) -> Beginning:
        field = f"files.{number}"
        located = self._place(f"{field}.path", wanted.path)
        target = None if wanted.to is None else self._place(f"{field}.to", wanted.to)
        if (wanted.kind is Kind.RENAME) != (target is not None):
            raise field_error(f"{field}.to", "a rename has one, and nothing else has")
        found = read(self._project, located)
        if wanted.kind in (Kind.DELETE, Kind.RENAME):
            if found is None:
                raise field_error(f"{field}.path", f"{located.shown}: there is no such file")
            self._require_no_link(f"{field}.path", located)
        if target is not None and read(self._project, target) is not None:
            raise field_error(f"{field}.to", f"{target.shown}: there is a file already")
        text = None if wanted.buffer_text is None else wanted.buffer_text.encode()
        return Beginning(
            kind=wanted.kind,
            path=located.shown,
            file=shown_name(str(located.path)),
            moved_to=None if target is None else target.shown,
            moved_file=None if target is None else shown_name(str(target.path)),
            folders=missing_folders(self._project, target or located),
            mode=None if found is None else found.mode,
            images={
                Role.BEFORE: image(connection, None if found is None else found.data),
                Role.TEXT_BEFORE: image(connection, text),
            },
        )

    def _place(self, field: str, given: str) -> Located:
        place = place_of(self._project, given)
        if place.problem is not None or place.located is None:
            raise field_error(field, f"{place.path}: {place.problem}")
        return place.located

    def _require_no_link(self, field: str, located: Located) -> None:
        """Raise if the path is a link that the change would replace."""
        path = self._project.root.resolve() / located.given
        if path.is_symlink():
            raise field_error(
                field, f"{shown_name(located.given)}: a link to {located.shown}; name that file"
            )

    # Ending

    def end(self, tool_use_id: str, outcome: State, texts: Mapping[int, str | None]) -> list[Json]:
        """Keep what files hold once they were changed; or nothing of it, if they were not."""
        with self._database.reading() as connection:
            unfinished = self._begun(connection, tool_use_id, texts)
            endings = [
                self._ending(connection, change, texts.get(change.number))
                for change in unfinished
                if outcome is State.DONE
            ]
        with self._database.writing() as connection:
            still = {change.number for change in self._begun(connection, tool_use_id, texts)}
            for ending in endings:
                if ending.change.number in still:
                    rows.end(connection, self._session_id, ending)
            for number in still if outcome is State.ABANDONED else ():
                rows.set_state(connection, self._session_id, number, State.ABANDONED)
            changes = rows.of_use(connection, self._session_id, tool_use_id)
        return [_end_entry(change) for change in changes]

    def _begun(
        self, connection: sqlite3.Connection, tool_use_id: str, texts: Mapping[int, str | None]
    ) -> list[Change]:
        known = rows.of_use(connection, self._session_id, tool_use_id)
        if not known:
            raise field_error("tool_use_id", f"nothing was begun under {tool_use_id!r}")
        strange = set(texts) - {change.number for change in known}
        if strange:
            listed = ", ".join(f"c{number}" for number in sorted(strange))
            raise field_error("files", f"{listed} was not begun under {tool_use_id!r}")
        return [change for change in known if change.state is State.BEGUN]

    def _ending(self, connection: sqlite3.Connection, change: Change, text: str | None) -> Ending:
        found = found_at(self._project, places(self._project, change))
        content = found[change.place_after]
        if change.kind is Kind.RENAME and (content is None or found[change.path] is not None):
            raise ChangeError(
                f"{change.label}: {change.path} was not renamed to {change.moved_to}; "
                "end it as abandoned",
                data={"number": change.number, "path": change.path},
            )
        data = None if content is None else content.data
        text_data = None if text is None else text.encode()
        contents = replace(Held.of(connection, change), after=data, text_after=text_data)
        added, removed = counts(*contents.compared())
        images = {
            Role.AFTER: image(connection, data),
            Role.TEXT_AFTER: image(connection, text_data),
        }
        return Ending(change, None if content is None else content.mode, images, added, removed)

    # Looking

    def listed(self, *, open_only: bool) -> dict[str, Json]:
        """Return all changes, oldest first, with their current state, and the checkpoints."""
        with self._database.reading() as connection:
            changes = rows.every(connection, self._session_id)
            checkpoints = rows.checkpoints(connection, self._session_id)
        entries = [
            change.told() | {"now": state}
            for change, state in self._standings().of(changes)
            if not open_only or change.state is State.BEGUN
        ]
        return {
            "changes": entries[::-1],
            "checkpoints": [checkpoint.told() for checkpoint in checkpoints],
        }

    def show(self, number: int, most: int | None) -> dict[str, Json]:
        """Return a change with its diff and what happened to its file since."""
        with self._database.reading() as connection:
            change = rows.numbered(connection, self._session_id, number)
            changes = rows.every(connection, self._session_id, number)
            contents = Held.of(connection, change)
        return shown(self._project, change, contents, most) | {
            "now": self._standings().of_first(changes)
        }

    def _standings(self) -> Standings:
        return Standings(self._project, self._content)

    def _content(self, sha256: str | None) -> bytes | None:
        with self._database.reading() as connection:
            return content(connection, sha256)

    # Undoing

    def undo(self, number: int, *, force: bool) -> dict[str, Json]:
        """Put the file back to what it was before the change."""
        undoing = looked_at(self._database, self._project, self._session_id, number, force=force)
        return undoing.run(self._database)

    def checkpoint(self, label: str) -> dict[str, Json]:
        """Remember where the session stands."""
        with self._database.writing() as connection:
            return rows.add_checkpoint(connection, self._session_id, label).told()

    def since(self, checkpoint: str) -> list[int]:
        """Return the changes to undo to return to a checkpoint, newest first."""
        with self._database.reading() as connection:
            known = {
                f"k{found.number}": found
                for found in rows.checkpoints(connection, self._session_id)
            }
            if checkpoint not in known:
                listed = ", ".join(known) or "none"
                raise field_error("checkpoint", f"there is no {checkpoint}; there are: {listed}")
            changes = rows.every(connection, self._session_id)
        after = known[checkpoint].after
        return [
            change.number
            for change in reversed(changes)
            if change.number > after and change.state in IN_FORCE
        ]


def _require_distinct(beginnings: Sequence[Beginning]) -> None:
    """Raise where two of them are about one file."""
    seen: set[str] = set()
    for number, beginning in enumerate(beginnings):
        for path in filter(None, (beginning.path, beginning.moved_to)):
            if path in seen:
                raise field_error(f"files.{number}", f"{path} is named twice")
            seen.add(path)


def _is_same_begin(begun: Sequence[Change], beginnings: Sequence[Beginning]) -> bool:
    """Return whether the same change was begun before and nothing differs."""
    return [_change_dict(one) for one in begun] == [_checkpoint_dict(one) for one in beginnings]


def _change_dict(change: Change) -> tuple[Json, ...]:
    return (
        *(change.kind, change.path, change.moved_to, change.mode_before),
        *(change.images.get(role) for role in (Role.BEFORE, Role.TEXT_BEFORE)),
    )


def _checkpoint_dict(beginning: Beginning) -> tuple[Json, ...]:
    images = (beginning.images[role] for role in (Role.BEFORE, Role.TEXT_BEFORE))
    return (
        *(beginning.kind, beginning.path, beginning.moved_to, beginning.mode),
        *(None if one is None else one.sha256 for one in images),
    )


def _end_reply(tool_use_id: str) -> ConflictError:
    return ConflictError(
        f"the changes of {tool_use_id!r} have ended; begin others under another tool_use_id",
        data={"tool_use_id": tool_use_id},
    )


def _begin_reply(change: Change) -> Json:
    before = change.images.get(Role.BEFORE)
    return {
        "number": change.number,
        "path": change.path,
        "file": change.file,
        "exists": before is not None,
        "sha256": before,
    }


def _end_entry(change: Change) -> Json:
    return {
        "number": change.number,
        "state": str(change.state),
        "before": change.images.get(Role.BEFORE),
        "after": change.images.get(Role.AFTER),
    }
