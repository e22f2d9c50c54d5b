"""How the files of changes stand now: as they were left, changed since, or as before."""

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
    """A path of a change, which must lead to the same file as it did then."""
    found = project.locate(path)
    if shown_name(str(found.path)) != file:
        raise ChangeError(
            f"{path} leads to {found.shown} now, by a link that was not there when it was changed; "
            "take the link away",
            data={"path": path},
        )
    return found


def places(project: Project, change: Change) -> dict[str, Located]:
    """Where the paths of a change lead."""
    found = {change.path: located(project, change.path, change.file)}
    if change.moved_to is not None and change.moved_file is not None:
        found[change.moved_to] = located(project, change.moved_to, change.moved_file)
    return found


def found_at(project: Project, places: dict[str, Located]) -> dict[str, Found | None]:
    """What is there."""
    return {path: read(project, place) for path, place in places.items()}


def contents(found: dict[str, Found | None]) -> dict[str, str | None]:
    """The names of what is there."""
    return {path: None if one is None else digest(one.data) for path, one in found.items()}


@dataclass
class Standings:
    """How each change of a session stands; every file is read once."""

    project: Project
    content: Callable[[str | None], bytes | None]
    """What is stored under a name."""
    _now: dict[str, str | None] = field(default_factory=dict)

    def of(self, changes: Sequence[Change]) -> Iterator[tuple[Change, str]]:
        """The latest first. A change counts as it left its file for the next one in force."""
        later: dict[str, Change] = {}
        for change in reversed(changes):
            yield change, self._standing(change, later)
            if change.state in IN_FORCE:
                later.update(dict.fromkeys(change.paths, change))

    def of_first(self, changes: Sequence[Change]) -> str:
        """That of the first of them alone."""
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
            left = now == change.after or self._is_saved(change, later)
        except EfritError:
            return UNKNOWN
        if left and change.state is State.DONE:
            return AS_LEFT
        if now == change.before:
            return UNDONE
        return UNKNOWN if change.state is State.BEGUN else CHANGED

    def _is_saved(self, change: Change, later: dict[str, Change]) -> bool:
        """Whether all that came since is that the person saved the buffer as it was left."""
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
        """What the next change of each path found there, or what is there now."""
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
