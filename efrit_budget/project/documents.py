"""The specification of a project: documents, stages and changes."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from efrit_budget.cancellation import Cancellation
from efrit_budget.project.paths import OutsideError, shown_name
from efrit_budget.project.project import Located, Project
from efrit_budget.project.search.listing import files_of
from efrit_budget.project.search.ripgrep import UnfinishedError
from efrit_budget.project.specs import STAGES, SUFFIXES
from efrit_budget.project.text.coding import mark_invalid
from efrit_budget.project.text.reading import NoFileError, Text, opened

MOST_BYTES = 1024 * 1024
"""The most bytes that are read of one document."""


@dataclass(frozen=True)
class Document:
    """A document of the specification: its path, size and time, without its text."""

    located: Located
    size: int
    """The size in bytes; that of the text in Emacs if the buffer is unsaved."""
    modified_ns: int

    @property
    def name(self) -> str:
        """The document's path as displayed."""
        return shown_name(self.located.given)

    @property
    def stage(self) -> str | None:
        """The stage that the file is named after, such as `design`, or None if it is no stage."""
        stem = PurePosixPath(self.located.given).stem.casefold()
        return stem if stem in STAGES else None


@dataclass(frozen=True)
class ChangeFolder:
    """A folder with the documents of one change to the project, planned or done."""

    name: str
    documents: tuple[Document, ...]


@dataclass(frozen=True)
class Specification:
    """The documents of a project's specification, as far as they may be read."""

    documents: tuple[Document, ...]
    changes: tuple[ChangeFolder, ...]
    conventions: tuple[Document, ...]
    left_out: tuple[str, ...]
    """The paths not read: they usually hold secrets, lead out of the project or are unreadable."""

    @property
    def missing_stages(self) -> list[str]:
        """The stages for which there is no document."""
        there = {document.stage for document in self.documents}
        return [stage for stage in STAGES if stage not in there]


def specification(project: Project, rg: Path, cancellation: Cancellation) -> Specification:
    """Find the documents, the changes and the convention files of a project."""
    specs = project.specs
    finder = _Finder(project, rg, cancellation)
    names = sorted({name for folder in specs.folders for name in finder.names(folder)})
    changes = sorted(finder.names(specs.changes))
    above = f"{os.path.normpath(specs.changes)}/"
    return Specification(
        documents=tuple(finder.documents(name for name in names if not name.startswith(above))),
        changes=tuple(finder.changes(above, changes)),
        conventions=tuple(finder.documents(iter(specs.conventions), must_be_there=False)),
        left_out=tuple(map(shown_name, finder.left_out)),
    )


class _Finder:
    """Finds the documents of a project, and collects the names that it leaves out."""

    def __init__(self, project: Project, rg: Path, cancellation: Cancellation) -> None:
        self._project = project
        self._rg = rg
        self._cancellation = cancellation
        self.left_out: list[str] = []

    def names(self, folder: str) -> list[str]:
        """Return the paths of all documents below a folder, from the root; empty if unreadable."""
        try:
            located = self._project.locate(folder)
            if not located.path.is_dir():
                return []
            found = files_of(located.path, self._rg, self._cancellation)
        except (OutsideError, UnfinishedError):
            self.left_out.append(folder)
            return []
        clean = os.path.normpath(folder)
        below = "" if clean == "." else f"{clean}/"
        return [
            f"{below}{inner}{name}"
            for tree in (found.tracked, found.untracked)
            for inner, names in tree.items()
            for name in names
            if PurePosixPath(name).suffix.casefold() in SUFFIXES
        ]

    def documents(self, names: Iterator[str], *, must_be_there: bool = True) -> Iterator[Document]:
        """Yield the documents that may be read; add the other names to `left_out`.

        A name without a file is added only if it `must_be_there`.
        """
        for name in names:
            self._cancellation.check()
            try:
                yield self._document(name)
            except FileNotFoundError:
                if must_be_there:
                    self.left_out.append(name)
            except (OSError, OutsideError):
                self.left_out.append(name)

    def _document(self, name: str) -> Document:
        located = self._project.locate(shown_name(name))
        if self._project.is_secret(located):
            raise PermissionError(name)
        buffer = self._project.buffer(located)
        found = self._project.stat(located)
        size = found.st_size if buffer is None else len(buffer.encode())
        return Document(located, size, found.st_mtime_ns)

    def changes(self, above: str, names: list[str]) -> Iterator[ChangeFolder]:
        """Group `names` by folder below `above`; yield these change folders with documents."""
        folders: dict[str, list[str]] = {}
        for name in names:
            folders.setdefault(name.removeprefix(above).partition("/")[0], []).append(name)
        for folder, members in folders.items():
            documents = tuple(self.documents(iter(members)))
            if documents:
                yield ChangeFolder(shown_name(above + folder), documents)


def text_of(
    project: Project, document: Document, cancellation: Cancellation, most: int = MOST_BYTES
) -> str:
    """Return the first `most` bytes of a document as text, empty if it is no readable text."""
    try:
        with opened(project, document.located, cancellation.check) as found:
            text = found.content
            if not isinstance(text, Text):
                return ""
            read = text.part(text.begin, min(text.end, text.begin + most))
            return mark_invalid(read).replace("\r\n", "\n")
    except (OSError, OutsideError, NoFileError):
        return ""
