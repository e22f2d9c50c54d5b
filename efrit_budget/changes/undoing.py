"""Restore a file to its content before a change."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import PurePath

from efrit_budget.changes import disk
from efrit_budget.changes.change import Change, Contents, Role, State
from efrit_budget.changes.disk import Found
from efrit_budget.changes.errors import ChangedSinceError, ChangeError
from efrit_budget.changes.rows import every, later_in_force, numbered, set_state
from efrit_budget.changes.showing import Held, since
from efrit_budget.changes.standing import contents, found_at, places
from efrit_budget.errors import Json
from efrit_budget.project.paths import meant_name, shown_name
from efrit_budget.project.project import Located, Project
from efrit_budget.storage.database import Database

OWNERS_ALONE = 0o600


@dataclass(frozen=True)
class Undoing:
    """One change that is about to be undone.

    What is found on the disk decides: an undo that was cut off half way is taken up where it
    stood, and the row says "undone" only behind what is on the disk.
    """

    session_id: str
    project: Project
    change: Change
    held: Held
    places: dict[str, Located]
    found: dict[str, Found | None]

    def run(self, database: Database) -> dict[str, Json]:
        """Put the file back, then say so in the change's row."""
        with database.writing() as connection:
            self._require_unchanged(connection)
            touched = self._put_back()
            self._remove_empty(_created_folders(connection, self.session_id))
            set_state(connection, self.session_id, self.change.number, State.UNDONE)
        return self._told(touched=touched)

    def _told(self, *, touched: bool) -> dict[str, Json]:
        change = self.change
        text = self.held.text_before
        on_disk = change.state is State.DONE and change.before != change.after
        return {
            "number": change.number,
            "path": change.path,
            "to": change.moved_to,
            "state": str(State.UNDONE),
            "file": shown_name(str(self.places[change.path].path)),
            "exists": self.held.before is not None,
            "sha256": change.images.get(Role.BEFORE),
            "disk": touched or on_disk,
            "buffer_text": None if text is None else text.decode(),
        }

    def _require_unchanged(self, connection: sqlite3.Connection) -> None:
        """Raise where the change was undone or ended since it was looked at."""
        if numbered(connection, self.session_id, self.change.number).state != self.change.state:
            raise ChangeError(
                f"{self.change.label} was ended or undone this very moment; look at it again",
                data={"number": self.change.number},
            )

    def _put_back(self) -> bool:
        """Restore the files; return whether anything on disk had to change."""
        change = self.change
        here, there = self.found[change.path], self.found[change.place_after]
        moved = change.place_after != change.path and there is not None
        if self.held.before is None:
            return self._removed(change.path, here)
        if moved and here is None and there is not None and there.data == self.held.before:
            source, target = self.places[change.place_after], self.places[change.path]
            disk.move(source, target, self._mode(there), there)
            return True
        replaced = self._replaced(self.held.before, here, there)
        return (moved and self._removed(change.place_after, there)) or replaced

    def _removed(self, path: str, found: Found | None) -> bool:
        if found is not None:
            disk.remove(self.places[path], found)
        return found is not None

    def _replaced(self, data: bytes, here: Found | None, there: Found | None) -> bool:
        place, mode = self.places[self.change.path], self._mode(here or there)
        if here is None or here.data != data:
            scratch = f".efrit-undo-{self.session_id}-{self.change.label}"
            disk.put(place, data, mode, here, scratch)
            return True
        if here.mode != mode:
            disk.set_mode(place, mode)
        return here.mode != mode

    def _mode(self, found: Found | None) -> int:
        """Return the permissions to restore, unless they were changed since."""
        before, after = self.change.mode_before, self.change.mode_after
        if found is not None and after is not None and found.mode != after:
            return found.mode
        return OWNERS_ALONE if before is None else before

    def _remove_empty(self, folders: set[str]) -> None:
        """Remove what this change, or one undone before it, made around its file."""
        folders = folders.union(self.change.folders)
        around = PurePath(meant_name(self.change.place_after)).parents
        for folder in around:
            if (name := shown_name(str(folder))) in folders:
                place = self.project.locate(name)
                if place.shown == name:
                    disk.remove_empty_folder(place)


def looked_at(
    database: Database, project: Project, session_id: str, number: int, *, force: bool
) -> Undoing:
    """Return the change to undo; raise if undoing it would lose later work."""
    with database.reading() as connection:
        change = numbered(connection, session_id, number)
        later = later_in_force(connection, session_id, change)
        contents = Held.of(connection, change)
    _require_effective(change)
    here = places(project, change)
    undoing = Undoing(session_id, project, change, contents, here, found_at(project, here))
    if not force:
        _require_last(change, later)
        _require_as_left(undoing, contents)
    return undoing


def _require_effective(change: Change) -> None:
    if change.state is State.UNDONE:
        reason = "is undone already"
    elif change.state is State.ABANDONED:
        reason = "was abandoned: it changed nothing, or what it changed was put back"
    else:
        return
    raise ChangeError(f"{change.label} of {change.path} {reason}", data={"number": change.number})


def _require_last(change: Change, later: list[Change]) -> None:
    if later:
        labels = ", ".join(one.label for one in reversed(later))
        raise ChangedSinceError(
            f"{change.label} of {change.path} is not the last of that file: undo {labels} first",
            data={"number": change.number, "path": change.path, "since": None, "later": labels},
        )


def _require_as_left(undoing: Undoing, held: Held) -> None:
    change = undoing.change
    became = since(change, held, undoing.found)
    if not became or contents(undoing.found) in (change.before, _interrupted_state(change)):
        return
    if change.state is State.BEGUN:
        reason = "was begun and nobody told how it ended, so what it holds may be anybody's"
    else:
        reason = "is not as the change left it"
    raise ChangedSinceError(
        f"{change.label}: {change.path} {reason}; nothing was undone",
        data={
            "number": change.number,
            "path": change.path,
            "since": became,
        },
    )


def _interrupted_state(change: Change) -> Contents | None:
    """Return the state that an interrupted undo of a rename leaves."""
    if change.state is State.BEGUN:
        return None
    return {**change.after, change.path: change.before[change.path]}


def _created_folders(connection: sqlite3.Connection, session_id: str) -> set[str]:
    """Return the folders that undone changes had created."""
    return {
        folder
        for change in every(connection, session_id)
        if change.state is State.UNDONE
        for folder in change.folders
    }
