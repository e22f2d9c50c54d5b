"""The person's own settings of git: which files hold them, and what those name."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from efrit_budget.project.programs import find_program

SYSTEM = Path("/etc/gitconfig")
NAMING = r"^(include|includeif\..*)\.path$|^core\.excludesfile$"
"""The settings that name further files."""
SECONDS = 10
MOST_FILES = 50

Signature = tuple[tuple[Path, int], ...]


def personal_files() -> tuple[Path, ...]:
    """Return the files of settings outside of all repositories, and those that they name."""
    return _latest.files()


class _Latest:
    """What was found last; it is looked for again when one of the files has changed."""

    def __init__(self) -> None:
        self._found: tuple[Path, ...] = ()
        self._signature: Signature | None = None

    def files(self) -> tuple[Path, ...]:
        first = tuple(_first())
        if self._signature is None or self._signature != _signature((*first, *self._found)):
            self._found = _with_named(first)
            self._signature = _signature((*first, *self._found))
        return self._found


_latest = _Latest()


def _first() -> Iterator[Path]:
    """Where git looks, unless its environment says otherwise, which is not passed on."""
    home = os.environ.get("HOME", "")
    own = os.environ.get("XDG_CONFIG_HOME") or (f"{home}/.config" if home else "")
    yield SYSTEM
    yield from _beside_git(os.environ.get("PATH", ""))
    if home.startswith("/"):
        yield Path(home, ".gitconfig")
    if own.startswith("/"):
        yield from (Path(own, "git", name) for name in ("config", "ignore"))


@cache
def _beside_git(_path: str) -> tuple[Path, ...]:
    """The settings of a git that is not the system's own, found once for each PATH."""
    git = find_program("git")
    return () if git is None else (Path(git).parent.parent / "etc" / "gitconfig",)


def _signature(files: tuple[Path, ...]) -> Signature:
    return tuple((file, _changed(file)) for file in files)


def _changed(file: Path) -> int:
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return 0


def _with_named(files: tuple[Path, ...]) -> tuple[Path, ...]:
    """The files that are there, and those that they name, and so on."""
    found: dict[Path, None] = {}
    waiting = list(files)
    while waiting and len(found) < MOST_FILES:
        file = waiting.pop(0)
        if file not in found and file.is_file():
            found[file] = None
            waiting += _named_in(file)
    return tuple(found)


def _named_in(file: Path) -> list[Path]:
    git = find_program("git")
    if git is None or file.name == "ignore":
        return []
    command = [git, "config", "--file", str(file), "-z", "--get-regexp", NAMING]
    try:
        printed = subprocess.run(  # noqa: S603  no repository has a part in it
            command, capture_output=True, check=False, timeout=SECONDS, cwd="/"
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    values = [os.fsdecode(entry.partition(b"\n")[2]) for entry in printed.split(b"\0")[:-1]]
    return [file.parent / Path(re.sub(r"^~(?=/|$)", _home, value)) for value in values if value]


def _home(_: re.Match[str]) -> str:
    return os.environ.get("HOME", "~")
