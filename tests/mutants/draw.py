"""Which mutants are tried: a draw that every machine repeats.

A site is known by what it says and where in which function, not by its line: a change elsewhere
leaves its place in the draw, and what was found out about it, as they were.
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
    """A site, and what is put there."""

    id: str
    site: Site
    after: str

    def text(self, root: Path) -> str:
        """Give the whole file with the change in it."""
        data = (root / self.site.path).read_bytes()
        if data[self.site.start : self.site.end].decode(errors="replace") != self.site.before:
            raise ChangedError(f"{self.site.path} was edited since the draw; run with --resume")
        changed = data[: self.site.start] + self.after.encode() + data[self.site.end :]
        return changed.decode()

    def __str__(self) -> str:
        """Where it is, and what stands there before and after."""
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
