"""Compare the files of changes with the disk: as left, changed since, or restored."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from efrit_budget.changes.change import IN_FORCE, Change, Contents, Role, State
from efrit_budget.changes.diffs import is_saved
from efrit_budget.changes.disk import Found, read
from efrit_budget.changes.errors import ChangeError
from efrit_budget.changes.images import digest
from efrit_budget.errors import EfritError
from efrit_budget.project.paths import shown_name
from efrit_budget.project.project import Located, Project

AS_LEFT, CHANGED, UNDONE, UNKNOWN = "as_left", "changed", "undone", "unknown"


def located(project: Project, path: str, file: str) -> Located:
    """Return the path of a change, which must still lead to the same file."""
    found = project.locate(path)
    if shown_name(str(found.path)) != file:
        raise ChangeError(
            f"{path} leads to {found.shown} now, by a link that was not there when it was changed; "
            "take the link away",
            data={"path": path},
        )
    return found


def places(project: Project, change: Change) -> dict[str, Located]:
    """Return where the paths of a change lead."""
    found = {change.path: located(project, change.path, change.file)}
    if change.moved_to is not None and change.moved_file is not None:
        found[change.moved_to] = located(project, change.moved_to, change.moved_file)
    return found


def found_at(project: Project, places: dict[str, Located]) -> dict[str, Found | None]:
    """Return the files at these paths."""
    return {path: read(project, place) for path, place in places.items()}


def contents(found: dict[str, Found | None]) -> dict[str, str | None]:
    """Return the hashes of the files at these paths."""
    return {path: None if one is None else digest(one.data) for path, one in found.items()}


@dataclass
class Standings:
    """The current state of every change of a session; reads each file once."""

    project: Project
    content: Callable[[str | None], bytes | None]
    """What is stored under a name."""
    _now: dict[str, str | None] = field(default_factory=dict)

    def of(self, changes: Sequence[Change]) -> Iterator[tuple[Change, str]]:
        """Return the state of each change, newest first, as the next change found its file."""
        later: dict[str, Change] = {}
        for change in reversed(changes):
            yield change, self._standing(change, later)
            if change.state in IN_FORCE:
                later.update(dict.fromkeys(change.paths, change))

    def of_first(self, changes: Sequence[Change]) -> str:
        """Return the state of the first change only."""
        later = {
            path: change
            for change in reversed(changes[1:])
            if change.state in IN_FORCE
            for path in change.paths
        }
        return self._standing(changes[0], later)

    def _standing(self, change: Change, later: dict[str, Change]) -> str:
        if change.state not in IN_FORCE:
            return UNDONE
        try:
            now = self._contents(change, later)
            is_as_left = now == change.after or self._is_saved(change, later)
        except EfritError:
            return UNKNOWN
        if is_as_left and change.state is State.DONE:
            return AS_LEFT
        if now == change.before:
            return UNDONE
        return UNKNOWN if change.state is State.BEGUN else CHANGED

    def _is_saved(self, change: Change, later: dict[str, Change]) -> bool:
        """Return whether the only later difference is that the buffer was saved."""
        text = change.images.get(Role.TEXT_AFTER)
        if text is None or change.moved_to is not None:
            return False
        taken_up = later.get(change.path)
        if taken_up is not None:
            data = self.content(taken_up.before[change.path])
        else:
            found = read(self.project, places(self.project, change)[change.path])
            data = None if found is None else found.data
        return is_saved(self.content(text), data)

    def _contents(self, change: Change, later: dict[str, Change]) -> Contents:
        """Return what the next change of each path found, or what is there now."""
        here = places(self.project, change)
        return {
            path: later[path].before[path] if path in later else self._read(path, place)
            for path, place in here.items()
        }

    def _read(self, path: str, place: Located) -> str | None:
        if path not in self._now:
            found = read(self.project, place)
            self._now[path] = None if found is None else digest(found.data)
        return self._now[path]
