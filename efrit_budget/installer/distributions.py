"""The distributions that this program consists of, and their files as they are installed here."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

OWN = "efrit-budget"
FOLDER = Path(__file__).resolve().parent.parent
NAME = re.compile(r"[A-Za-z0-9._-]+")
LEFT_OUT = ("__pycache__", "RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "elisp")
"""Names of files and folders that belong to one installation, or serve an Emacs on its machine."""
SCRIPTS = re.compile(r"(?:\.\./)+bin/([^/]+)")
"""Matches the path of a program, from the folder of the packages on."""


@dataclass(frozen=True)
class PlacedFile:
    """A file to install: its path in the virtual environment's packages or programs."""

    path: str
    source: Path
    is_program: bool = False


@dataclass(frozen=True)
class Distribution:
    """One distribution that is installed here."""

    name: str
    found: metadata.Distribution

    @property
    def version(self) -> str:
        """The version."""
        return self.found.version

    @property
    def metadata(self) -> str:
        """The text of its metadata."""
        return str(self.found.metadata)

    @property
    def is_pure(self) -> bool:
        """True if the distribution is the same on each machine."""
        wheel = self.found.read_text("WHEEL") or ""
        return self.name == OWN or "Tag: py3-none-any" in wheel or "Tag: py2.py3-none-any" in wheel

    def files(self) -> Iterator[PlacedFile]:
        """Yield the files of the distribution."""
        if self.name == OWN:
            yield from _own_files()
            return
        programs = {one.name for one in self.found.entry_points if one.group == "console_scripts"}
        for file in self.found.files or ():
            script = SCRIPTS.fullmatch(file.as_posix())
            source = Path(str(file.locate()))
            if set(file.parts) & set(LEFT_OUT) or not source.is_file():
                continue
            if script is None:
                yield PlacedFile(file.as_posix(), source)
            elif script[1] not in programs:
                yield PlacedFile(script[1], source, is_program=True)


def _own_files() -> Iterator[PlacedFile]:
    """Yield the files of this package, wherever it was loaded from."""
    for source in sorted(FOLDER.rglob("*")):
        if source.is_file() and not set(source.parts) & set(LEFT_OUT):
            yield PlacedFile(source.relative_to(FOLDER.parent).as_posix(), source)


def needed() -> list[Distribution]:
    """Return this program's distribution and those that it requires, directly and indirectly.

    A requirement that is not installed here is one for other systems or versions of Python.
    """
    found: dict[str, Distribution] = {}
    waiting = [OWN]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        try:
            found[name] = Distribution(name, metadata.distribution(name))
        except metadata.PackageNotFoundError:
            continue
        for line in found[name].found.requires or ():
            required = NAME.match(line)
            if required and "extra ==" not in line:
                waiting.append(re.sub(r"[-_.]+", "-", required[0]).lower())
    return list(found.values())
