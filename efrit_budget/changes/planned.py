"""Changes that a tool is about to make."""

from dataclasses import dataclass

from efrit_budget.changes.change import ChangedSinceError, ChangeKind
from efrit_budget.changes.disk import DiskFile
from efrit_budget.errors import field_error
from efrit_budget.project.project import Located


@dataclass(frozen=True)
class PlannedChange:
    """A change that the client is about to make."""

    path: str
    kind: ChangeKind
    to: str | None
    """The new path of a file that is renamed."""
    buffer_text: str | None
    """The text of the file's buffer, if the buffer is modified and not saved."""

    def check(self, field: str, located: Located, file: DiskFile | None) -> None:
        """Raise, naming `field`, if the change does not fit its file; the client checks that."""


@dataclass(frozen=True)
class Replacement:
    """Bytes that take the place of those from `start` to `end`."""

    start: int
    end: int
    data: bytes

    def applied(self, before: bytes) -> bytes:
        """Return a content with these bytes in place."""
        return before[: self.start] + self.data + before[self.end :]


@dataclass(frozen=True)
class PlannedWrite(PlannedChange):
    """A change that the sidecar makes."""

    stamp: str | None
    """The stamp of the file for which the change was planned; None for no file."""
    replacement: Replacement | None
    """The new bytes; None for a deletion, a rename and an edit of an unsaved buffer."""
    text_after: str | None
    """The text of the file's buffer after the change, if that is not saved."""

    def check(self, field: str, located: Located, file: DiskFile | None) -> None:
        """Raise, naming `field`, if the file changed since the plan, or the bytes do not fit it."""
        if self.stamp != (None if file is None else file.stamp):
            raise changed_since(located)
        replacement, size = self.replacement, 0 if file is None else len(file.data)
        is_text = self.kind in (ChangeKind.EDIT, ChangeKind.CREATE)
        if is_text != (replacement is not None or self.text_after is not None):
            raise field_error(field, "an edit and a creation have `replace` or `buffer_text_after`")
        if replacement is not None and not replacement.start <= replacement.end <= size:
            raise field_error(f"{field}.replace", f"{located.shown} has {size:,} bytes")


def changed_since(located: Located) -> ChangedSinceError:
    """Return the error for a file that changed after its change was planned."""
    return ChangedSinceError(
        f"{located.shown} was just changed by somebody else; read it again",
        data={"path": located.shown},
    )
