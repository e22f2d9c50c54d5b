"""The choice of mutants to try, which is the same on every machine.

A site is identified by its text and its place in the function, not by its line: a change elsewhere
in the file alters neither the draw nor the results recorded for it.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.sites import Site

SEED = 1
COUNT = 600


class ChangedError(Exception):
    """A file was edited after mutants were drawn from it."""


@dataclass(frozen=True)
class Mutant:
    """A site, and the text that replaces it."""

    id: str
    site: Site
    after: str

    def text(self, root: Path) -> str:
        """Return the whole file with the change made."""
        data = (root / self.site.path).read_bytes()
        if data[self.site.start : self.site.end].decode(errors="replace") != self.site.before:
            raise ChangedError(f"{self.site.path} was edited since the draw; run with --resume")
        changed = data[: self.site.start] + self.after.encode() + data[self.site.end :]
        return changed.decode()

    def __str__(self) -> str:
        """Return the place of the mutant, and the code before and after."""
        before, after = (" ".join(text.split()) for text in (self.site.before, self.after))
        return f"{self.site.path}:{self.site.line}  {before}  ->  {after or '(nothing)'}"


def drawn(sites: Iterable[Site], count: int = COUNT, seed: int = SEED) -> list[Mutant]:
    """Draw as many sites, each as likely as any other, and one change for each."""
    seen: Counter[str] = Counter()
    mutants: list[tuple[str, Mutant]] = []
    for site in sites:
        said = "\n".join((site.module, site.function, site.kind, site.before))
        seen[said] += 1
        number = _number(f"{seed}\n{said}\n{seen[said]}")
        after = site.choices[int(number[-8:], 16) % len(site.choices)]
        name = _number(f"{said}\n{seen[said]}\n{after}")[:10]
        mutants.append((number, Mutant(name, site, after)))
    chosen = [mutant for _, mutant in sorted(mutants, key=lambda each: each[0])[:count]]
    return sorted(chosen, key=lambda mutant: (mutant.site.path, mutant.site.start, mutant.id))


def _number(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
