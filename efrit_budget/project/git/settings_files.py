"""Find the person's own git settings files and the files they include."""

import os
import re
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from efrit_budget.project.file_cache import FileCache, Sources
from efrit_budget.project.processes.programs import find_program

SYSTEM = Path("/etc/gitconfig")
NAMING = r"^(include|includeif\..*)\.path$|^core\.excludesfile$"
"""The settings of git whose values are paths of further files."""
SECONDS = 10
MOST_FILES = 50


def personal_files() -> tuple[Path, ...]:
    """Return the existing settings files that git reads everywhere, and the files that they name.

    Environment variables of git could name other files, but they are not passed on to git.
    """
    home = os.environ.get("HOME", "")
    own = os.environ.get("XDG_CONFIG_HOME") or (f"{home}/.config" if home else "")
    first = [SYSTEM, *_beside_git(os.environ.get("PATH", ""))]
    if home.startswith("/"):
        first.append(Path(home, ".gitconfig"))
    if own.startswith("/"):
        first += [Path(own, "git", name) for name in ("config", "ignore")]
    return _found.get(tuple(first), lambda sources: _with_named(first, sources))


_found: FileCache[tuple[Path, ...], tuple[Path, ...]] = FileCache()


@cache
def _beside_git(_path: str) -> tuple[Path, ...]:
    """Return the settings file beside the git in PATH, if there is one; cached by PATH."""
    git = find_program("git")
    return () if git is None else (Path(git).parent.parent / "etc" / "gitconfig",)


def _with_named(files: Sequence[Path], sources: Sources) -> tuple[Path, ...]:
    """Return those of the files that exist, and the existing files that they name."""
    found: dict[Path, None] = {}
    waiting = list(files)
    while waiting and len(found) < MOST_FILES:
        file = waiting.pop(0)
        if file not in found and sources.add(file).is_file():
            found[file] = None
            waiting += _named_in(file)
    return tuple(found)


def _named_in(file: Path) -> list[Path]:
    git = find_program("git")
    if git is None or file.name == "ignore":
        return []
    command = [git, "config", "--file", str(file), "-z", "--get-regexp", NAMING]
    try:
        printed = subprocess.run(  # noqa: S603  no repository is read
            command, capture_output=True, check=False, timeout=SECONDS, cwd="/"
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    values = [os.fsdecode(entry.partition(b"\n")[2]) for entry in printed.split(b"\0")[:-1]]
    home = os.environ.get("HOME", "~")
    own = (re.sub(r"^~(?=/|$)", lambda _: home, value) for value in values if value)
    return [file.parent / value for value in own]
