"""Compare the files of changes with the disk: as a change left them, changed since, or undone."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from efrit_budget.changes.change import IN_FORCE, Change, ChangeError, ChangeState, Role
from efrit_budget.changes.diffs import is_saved
from efrit_budget.changes.disk import DiskFile, read
from efrit_budget.changes.rows import digest
from efrit_budget.errors import EfritError
from efrit_budget.project.paths import shown_name
from efrit_budget.project.project import Located, Project

AS_LEFT, CHANGED, UNDONE, UNKNOWN = "as_left", "changed", "undone", "unknown"


def locate_all(project: Project, change: Change) -> dict[str, Located]:
    """Return the files of a change by path; raise if a path leads to another file now."""
    files = {change.path: change.file}
    if change.moved_to is not None and change.moved_file is not None:
        files[change.moved_to] = change.moved_file
    found = {path: project.locate(path) for path in files}
    for path, located in found.items():
        if shown_name(str(located.path)) != files[path]:
            raise ChangeError(
                f"{path} leads to {located.shown} now, by a link that was made after the "
                "change; remove the link",
                data={"path": path},
            )
    return found


def read_files(located: Mapping[str, Located]) -> dict[str, DiskFile | None]:
    """Return the files at these paths, None where there is no file."""
    return {path: read(place) for path, place in located.items()}


def hashes_of(files: Mapping[str, DiskFile | None]) -> dict[str, str | None]:
    """Return the hashes of files by path, None where there is no file."""
    return {path: None if file is None else digest(file.data) for path, file in files.items()}


class FileStates:
    """The states of the files of a session's changes; each file is hashed once."""

    def __init__(self, project: Project, content: Callable[[str | None], bytes | None]) -> None:
        self.project = project
        self._content = content
        """Returns the stored content that has a hash, None for None."""
        self._hashes: dict[str, str | None] = {}

    def of_all(self, changes: Sequence[Change]) -> Iterator[tuple[Change, str]]:
        """Yield each change with the state of its file, newest first.

        If the file has a later change, compare with what that change found, not with the disk.
        """
        later: dict[str, Change] = {}
        for change in reversed(changes):
            yield change, self._state(change, later)
            if change.state in IN_FORCE:
                later.update(dict.fromkeys(change.paths, change))

    def of_one(self, change: Change, changes_after: Sequence[Change]) -> str:
        """Return the state of one change's file; `changes_after` are all later changes."""
        later = {
            path: one
            for one in reversed(changes_after)
            if one.state in IN_FORCE
            for path in one.paths
        }
        return self._state(change, later)

    def _state(self, change: Change, later: Mapping[str, Change]) -> str:
        if change.state not in IN_FORCE:
            return UNDONE
        try:
            located = locate_all(self.project, change)
            now = {
                path: later[path].before[path] if path in later else self._hash(path, place)
                for path, place in located.items()
            }
            is_as_left = now == change.after or self._is_saved(change, located, later)
        except EfritError:
            return UNKNOWN
        if is_as_left and change.state is ChangeState.DONE:
            return AS_LEFT
        if now == change.before:
            return UNDONE
        return UNKNOWN if change.state is ChangeState.BEGUN else CHANGED

    def _is_saved(
        self, change: Change, located: Mapping[str, Located], later: Mapping[str, Change]
    ) -> bool:
        """Return whether the file has the text that its unsaved buffer had after the change."""
        text = change.hashes.get(Role.TEXT_AFTER)
        if text is None or change.moved_to is not None:
            return False
        if change.path in later:
            data = self._content(later[change.path].before[change.path])
        else:
            file = read(located[change.path])
            data = None if file is None else file.data
        return is_saved(self._content(text), data)

    def _hash(self, path: str, located: Located) -> str | None:
        if path not in self._hashes:
            self._hashes |= hashes_of(read_files({path: located}))
        return self._hashes[path]
