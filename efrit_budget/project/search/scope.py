"""Decide what a search covers: no secrets, and unsaved buffers instead of files."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path

from efrit_budget.project.project import Located, Project
from efrit_budget.project.search.globs import Glob, exactly
from efrit_budget.project.search.secret_files import (
    LATEST,
    MOST_BY_NAME,
    SecretFiles,
    SecretNames,
)
from efrit_budget.project.search.walk import Walk

NO_SECRETS: Future[SecretFiles] = Future()
NO_SECRETS.set_result(SecretFiles())


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
    listing: Future[SecretFiles]
    """The files with names like those of secret files; they may be found after the search."""
    begun: int
    """The time in nanoseconds before the first file was listed or searched."""
    named: str | None = None
    """The one file that the call names, searched even if it is secret; None for a folder."""
    limits: Sequence[str] | None = None
    """If the flags leave out secret files by name patterns: the flags without these patterns."""

    @property
    def alike(self) -> Sequence[str]:
        """The files that hold no secrets, but that the flags leave out for their names."""
        if self.limits is None:
            return ()
        unsaved = {buffer.name for buffer in self.unsaved}
        return [name for name in self.listing.result().alike if name not in unsaved]

    def by_name(self) -> Scope:
        """Return the scope that leaves out secret files by path, or too many by pattern."""
        excluding = [f"--glob=!{exactly(name)}" for name in self.listing.result().secret]
        if len(excluding) > MOST_BY_NAME:
            globs = [f"--iglob=!{glob}" for glob in self.secrets.globs]
            excluding = self.secrets.flags or globs
        return replace(self, flags=[*(self.limits or ()), *excluding], limits=None)

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
        return Scope([], unsaved, secrets, NO_SECRETS, begun, walk.target)
    flags = [] if glob is None else _flags(walk, glob)
    listing = LATEST.get(walk, flags, secrets)
    # With a glob of whole paths, rg searches all that it matches, whatever other flags say.
    brings_back = glob is not None and not (glob.excludes or glob.is_of_names)
    excluding = None if listing.done() or brings_back else secrets.flags
    covered = _covered(walk, project, flags, glob) if project.buffers else []
    unsaved = [buffer for buffer in covered if not secrets.holds(buffer.name)]
    limits = flags + [f"--glob=!{exactly(buffer.name)}" for buffer in unsaved]
    scope = Scope(limits, unsaved, secrets, listing, begun, limits=limits)
    return scope.by_name() if excluding is None else replace(scope, flags=[*limits, *excluding])


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
