"""Find the files that usually hold secrets, during a search that leaves them out."""

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
"""The most files that a command leaves out by path; more would not fit into it."""
MOST_FOLDERS = 200
"""The most folders that are listed one by one."""
PLAIN = re.compile(r"[^\[\]{}\\:]*", re.ASCII)
"""The patterns that mean the same to fnmatch and to the file types of rg."""


@dataclass(frozen=True)
class SecretNames:
    """Recognizes secret files by path; `top` completes paths below a root outside the project."""

    secrets: Secrets
    top: str

    def holds(self, name: str) -> bool:
        """Return whether the file at a path from the root is likely to hold secrets."""
        return self.secrets.holds(self.top + name)

    @property
    def globs(self) -> list[str]:
        """Globs that match every secret file below the root, and some others."""
        return ["**"] if self.secrets.may_be_in(self.top) else self.secrets.globs

    @property
    def flags(self) -> list[str] | None:
        """The rg flags that leave out secret files; None if rg cannot express the patterns.

        Patterns of names become a file type, which spares folders; all below `X/*` is left out.
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
    """The files below a folder with names like those of secret files."""

    secret: Sequence[str] = ()
    """The files that usually hold secrets, also those that git ignores."""
    covered: Sequence[str] = ()
    """The secret files that a search would read if it did not leave them out."""
    alike: Sequence[str] = ()
    """The files without secrets that a search would read if its flags did not leave them out."""


class _Latest:
    """The secret files found recently: finding them can take as long as a search.

    Secret files that were made since then are removed from the hits of a search.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: OrderedDict[object, tuple[float, Future[SecretFiles]]] = OrderedDict()

    def get(self, walk: Walk, flags: Sequence[str], names: SecretNames) -> Future[SecretFiles]:
        """Return the secret files found in the last two minutes, or begin a thread to find them."""
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
    """Return the candidates that a search with `flags` would read; list only their folders."""
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
    """Return the topmost folder above a file whose own path matches a secret pattern, or None."""
    above = reversed(PurePath(name).parents)
    return next((str(f) for f in above if names.secrets.fit(f"{names.top}{f}")), None)


def _in_any_case(pattern: str) -> str:
    """Return a glob that matches the names that a pattern matches, in capitals too."""
    return "".join(
        f"[{letter}{letter.upper()}]" if letter.isalpha() else letter for letter in pattern.lower()
    )
