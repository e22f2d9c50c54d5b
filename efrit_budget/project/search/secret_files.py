"""Finds the files that usually hold secrets, while a search that leaves them out is under way."""

import os
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import PurePath

from efrit_budget.project.search.walk import DIRECTLY, Walk, in_repository
from efrit_budget.project.secrets import Secrets

FRESH_SECONDS = 120.0
MOST_REMEMBERED = 50
MOST_BY_NAME = 10_000
"""Files left out one by one; more of them would not fit into a command."""
MOST_FOLDERS = 200
"""Folders that are listed one by one."""
PLAIN = re.compile(r"[^\[\]{}\\:]*", re.ASCII)
"""A pattern that fnmatch and a type of rg read alike."""


@dataclass(frozen=True)
class SecretNames:
    """The secret names below a root; other roots use whole paths."""

    secrets: Secrets
    top: str

    def holds(self, name: str) -> bool:
        """Return whether a file is likely to hold secrets."""
        return self.secrets.holds(self.top + name)

    @property
    def globs(self) -> list[str]:
        """Globs that match every secret file below the root, and some others."""
        return ["**"] if self.secrets.may_be_in(self.top) else self.secrets.globs

    @property
    def flags(self) -> list[str] | None:
        """Return flags that leave out what the globs fit, but no folder; None if there are none.

        A type of rg is about the names of files alone. What is below `X/*` is left out whole.
        """
        patterns = [p for p in self.secrets.patterns if not p.startswith("!")]
        plain = all(p.isascii() and PLAIN.fullmatch(p) for p in patterns)
        if not plain or self.secrets.may_be_in(self.top):
            return None
        names = [f"--type-add=secret:{_in_any_case(p)}" for p in patterns if "/" not in p]
        paths = [f"--iglob=!**/{p}" for p in patterns if "/" in p]
        return [*names, *(["--type-not=secret"] if names else []), *paths]


@dataclass(frozen=True)
class SecretFiles:
    """The files below a folder that are called as those are that hold secrets."""

    secret: Sequence[str] = ()
    """Those that usually hold secrets, ignored ones too."""
    covered: Sequence[str] = ()
    """Those of them that a search would come to."""
    alike: Sequence[str] = ()
    """Files that a search would come to and that hold none, though the flags leave them out."""


class _Latest:
    """The secret files found a moment ago: looking for them takes as long as many a search.

    What came into being since is taken out of what a search finds.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: OrderedDict[object, tuple[float, Future[SecretFiles]]] = OrderedDict()

    def get(self, walk: Walk, flags: Sequence[str], names: SecretNames) -> Future[SecretFiles]:
        """Return what was found in the last two minutes; else begin to look, in a thread."""
        key, moment = (walk.root, walk.target, *flags, names), time.monotonic()
        with self._lock:
            begun, listing = self._found.get(key, (moment, None))
        is_fresh = listing is not None and listing.done() and moment - begun < FRESH_SECONDS
        if listing is not None and is_fresh and listing.exception() is None:
            return listing
        thread = ThreadPoolExecutor(1)
        try:
            listing = thread.submit(_look, walk, flags, names)
        finally:
            thread.shutdown(wait=False)
        with self._lock:
            self._found[key] = (moment, listing)
            while len(self._found) > MOST_REMEMBERED:
                self._found.popitem(last=False)
        return listing


LATEST = _Latest()


def _look(walk: Walk, flags: Sequence[str], names: SecretNames) -> SecretFiles:
    if not names.globs:
        return SecretFiles()
    globs = [f"--glob={glob}" for glob in names.globs]
    candidates = walk.names(["--glob-case-insensitive", *globs])
    secret = {name for name in candidates if names.holds(name)}
    covered = _covered(walk, flags, candidates, names)
    return SecretFiles(sorted(secret), sorted(secret & covered), sorted(covered - secret))


def _covered(
    walk: Walk, flags: Sequence[str], candidates: set[str], names: SecretNames
) -> set[str]:
    """Return those of the candidates that a search would come to, by a look at their folders."""
    if not candidates:
        return set()
    beside: set[str] = set()
    below: set[str] = set()
    for name in candidates:
        odd = _odd_folder(name, names)
        (beside if odd is None else below).add(os.path.dirname(odd or name))  # noqa: PTH120
    if "" in below or len(beside | below) > MOST_FOLDERS or not in_repository(walk.root):
        return candidates & walk.names(flags)
    found = walk.names_in(beside, [*flags, DIRECTLY]) if beside else set()
    return candidates & (found | walk.names_in(below, flags) if below else found)


def _odd_folder(name: str, names: SecretNames) -> str | None:
    """Return the topmost folder of a file that was looked into for its name, ignored or not."""
    above = reversed(PurePath(name).parents)
    return next((str(f) for f in above if names.secrets.fit(f"{names.top}{f}")), None)


def _in_any_case(pattern: str) -> str:
    """Return a glob that fits the names that a pattern fits, in capitals too."""
    return "".join(
        f"[{letter}{letter.upper()}]" if letter.isalpha() else letter for letter in pattern.lower()
    )
