"""Decide what a search covers: no secrets, and unsaved buffers instead of files."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from efrit_budget.project.project import Located, Project
from efrit_budget.project.search.globs import Glob, exactly
from efrit_budget.project.search.secret_files import (
    MOST_BY_NAME,
    SecretNames,
    flags_by_name,
    flags_by_pattern,
)
from efrit_budget.project.search.walk import Walk


@dataclass(frozen=True)
class Unsaved:
    """A file with an unsaved buffer."""

    name: str
    text: str = field(repr=False)
    stale: bool = False
    """Whether the file on disk has changed since Emacs read it."""


@dataclass(frozen=True)
class Scope:
    """The rg flags of a search, and the unsaved buffers to search in place of their files."""

    flags: Sequence[str]
    unsaved: Sequence[Unsaved]
    secrets: SecretNames
    begun: int
    """The time in nanoseconds before the first file was listed or searched."""
    named: str | None = None
    """The one file that the call names, searched even if it is secret; None for a folder."""

    def leaves_out(self, name: str) -> bool:
        """Return whether a found file must not be shown, because it probably holds secrets."""
        return name != self.named and self.secrets.holds(name)


def scope_of(walk: Walk, project: Project, located: Located, glob: Glob | None) -> Scope:
    """Return the scope of a search in the file or folder `located`."""
    begun = time.time_ns()
    top = "" if walk.root == project.root.resolve() else f"{walk.root}/"
    secrets = SecretNames(project.secrets, top)
    if located.path.is_file():
        text = project.buffer(located)
        unsaved = [] if text is None else [Unsaved(walk.target, text, project.is_stale(located))]
        return Scope([], unsaved, secrets, begun, walk.target)
    flags = [] if glob is None else _flags(walk, glob)
    covered = _covered(walk, project, flags, glob) if project.buffers else []
    unsaved = [buffer for buffer in covered if not secrets.holds(buffer.name)]
    flags += [f"--glob=!{exactly(buffer.name)}" for buffer in unsaved]
    excluding = flags_by_pattern(secrets)
    if excluding is None:
        excluding = flags_by_name(walk, flags, secrets)
    return Scope([*flags, *excluding], unsaved, secrets, begun)


def _flags(walk: Walk, glob: Glob) -> list[str]:
    """Return rg flags for a glob that still respect ignore rules."""
    if glob.excludes:
        return [f"--glob={glob.text}"]
    if glob.is_of_names:
        text = glob.text if glob.text[0] != "i" else f"[i]{glob.text[1:]}"  # not rg's "include:"
        return [f"--type-add=wanted:{text}", "--type=wanted"]
    only = [f"--glob={glob.text}"]
    ignored = walk.names(only) - walk.names()
    return only + [f"--glob=!{exactly(name)}" for name in sorted(ignored)[:MOST_BY_NAME]]


def _covered(
    walk: Walk, project: Project, flags: Sequence[str], glob: Glob | None
) -> list[Unsaved]:
    """Return the unsaved buffers of files that the search covers."""
    below = walk.root / walk.target
    near = {
        os.path.relpath(path, walk.root): path for path in project.buffers if below in path.parents
    }
    if not near:
        return []
    covered = walk.names(flags)
    new = {name for name in near if _is_new(walk.root / name) and (not glob or glob.takes(name))}
    return [
        Unsaved(name, project.buffers[near[name]], near[name] in project.stale)
        for name in sorted(near.keys() & (covered | new))
    ]


def _is_new(path: Path) -> bool:
    return not os.path.lexists(path) and ".git" not in path.parts
