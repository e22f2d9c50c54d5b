"""What of a project a search covers: no secrets, and unsaved texts in the place of their files."""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from efrit_budget.project.globs import Glob, exactly
from efrit_budget.project.project import Located, Project
from efrit_budget.project.secrets import Secrets
from efrit_budget.project.walking import Walk

FRESH_SECONDS = 120.0
MOST_REMEMBERED = 50
MOST_BY_NAME = 10_000
"""Files left out one by one; more of them would not fit into a command."""


@dataclass(frozen=True)
class Unsaved:
    """A file of which Emacs holds another text than the disk."""

    name: str
    text: str = field(repr=False)
    stale: bool = False
    """Whether the file on disk has changed since Emacs read it."""


@dataclass(frozen=True)
class SecretNames:
    """Which names below a root mean secrets; those of a root elsewhere are whole paths."""

    secrets: Secrets
    top: str

    def holds(self, name: str) -> bool:
        """Whether a file usually holds secrets."""
        return self.secrets.holds(self.top + name)

    def may_be_in(self, names: str) -> bool:
        """Whether any of these names could mean one: a look at all at once."""
        return self.secrets.may_be_in(self.top + names)

    @property
    def globs(self) -> list[str]:
        """Globs that find every such file below the root, and some others."""
        return ["**"] if self.secrets.may_be_in(self.top) else self.secrets.globs


@dataclass(frozen=True)
class Scope:
    """The flags of rg that limit a search, and what is searched beside."""

    flags: Sequence[str]
    unsaved: Sequence[Unsaved]
    secret: Sequence[str]
    """Files that are left out because they usually hold secrets."""
    only_unsaved: bool
    """Whether the one file that is meant is unsaved."""
    secrets: SecretNames
    named: str | None
    """The one file that is meant, whatever it holds."""

    def leaves_out(self, name: str) -> bool:
        """Whether a file that was found is not to be told of."""
        return name != self.named and self.secrets.holds(name)


def scope_of(walk: Walk, project: Project, located: Located, glob: Glob | None) -> Scope:
    """What a search below `located` covers; the walk is that of the same place."""
    secrets = SecretNames(project.secrets, _top(walk, project))
    if located.path.is_file():
        text = project.buffer(located)
        unsaved = [] if text is None else [Unsaved(walk.target, text, project.is_stale(located))]
        return Scope([], unsaved, [], text is not None, secrets, walk.target)
    flags = _flags(walk, glob)
    left_out, told = LATEST.secrets(walk, flags, secrets)
    covered = _covered(walk, project, flags, glob)
    unsaved = [buffer for buffer in covered if not secrets.holds(buffer.name)]
    flags += _without(left_out, secrets)
    flags += [f"--glob=!{exactly(buffer.name)}" for buffer in unsaved]
    return Scope(flags, unsaved, told, False, secrets, None)


def _top(walk: Walk, project: Project) -> str:
    return "" if walk.root == project.root.resolve() else f"{walk.root}/"


def _flags(walk: Walk, glob: Glob | None) -> list[str]:
    """The flags for a glob that do not bring back what is ignored, as `--glob` alone would."""
    if glob is None:
        return []
    if glob.excludes:
        return [f"--glob={glob.text}"]
    if glob.is_of_names:
        text = glob.text if glob.text[0] != "i" else f"[i]{glob.text[1:]}"  # no "include:"
        return [f"--type-add=wanted:{text}", "--type=wanted"]
    only = [f"--glob={glob.text}"]
    ignored = walk.names(only) - walk.names()
    return only + [f"--glob=!{exactly(name)}" for name in sorted(ignored)[:MOST_BY_NAME]]


Found = tuple[list[str], list[str]]


class _Latest:
    """The secrets found a moment ago: looking for them takes as long as many a search.

    What came into being since is taken out of what a search finds.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: OrderedDict[tuple[object, ...], tuple[float, Found]] = OrderedDict()

    def secrets(self, walk: Walk, flags: Sequence[str], names: SecretNames) -> Found:
        """The files that usually hold secrets, and those of them that would be searched."""
        key = (walk.root, walk.target, *flags, names)
        moment = time.monotonic()
        with self._lock:
            known = self._found.get(key)
        if known is not None and moment - known[0] < FRESH_SECONDS:
            return known[1]
        secret = _secret(walk, names)
        found = sorted(secret), sorted(secret & walk.names(flags)) if secret else []
        with self._lock:
            self._found[key] = (moment, found)
            while len(self._found) > MOST_REMEMBERED:
                self._found.popitem(last=False)
        return found


LATEST = _Latest()


def _secret(walk: Walk, secrets: SecretNames) -> set[str]:
    """The files that usually hold secrets, ignored ones too."""
    globs = [f"--glob={glob}" for glob in secrets.globs]
    candidates = walk.names(["--glob-case-insensitive", *globs])
    return {name for name in candidates if secrets.holds(name)}


def _without(names: Iterable[str], secrets: SecretNames) -> list[str]:
    exact = [f"--glob=!{exactly(name)}" for name in sorted(names)]
    if len(exact) <= MOST_BY_NAME:
        return exact
    return [f"--iglob=!{glob}" for glob in secrets.globs]


def _covered(
    walk: Walk, project: Project, flags: Sequence[str], glob: Glob | None
) -> list[Unsaved]:
    """The unsaved texts of files that the search would come to, or would once they are there."""
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
