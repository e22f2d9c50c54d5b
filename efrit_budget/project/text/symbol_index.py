"""Rank the definitions in many files by the number of other files that use them."""

import os
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from heapq import nlargest
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from efrit_budget.cancellation import Cancellation
from efrit_budget.project.text import definitions
from efrit_budget.project.text.uses import find_uses, split_uses

MOST_BYTES = 512 * 1024
"""Larger files, which are mostly generated, are left out."""
MOST_KEPT = 50_000
"""The most files of which the definitions and words are kept for the next time."""
MOST_RANKINGS = 4
BINARY_WITHIN = 8 * 1024
NO_CODE = (
    *(".md", ".rst", ".txt", ".org", ".adoc", ".tex", ".html", ".htm", ".xml", ".svg", ".css"),
    *(".scss", ".less", ".json", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".csv", ".po", ".lock"),
)
"""The endings of texts and data, which are not looked at."""
Stamp = tuple[int, int]
"""Time of change and size of a file; hash and length of an unsaved buffer."""


class Facts(NamedTuple):
    """What one file defines and uses, packed as bytes to take little memory."""

    stamp: Stamp
    definitions: bytes
    """The packed definitions, a line each."""
    uses: bytes
    """The distinct forms in which the file uses names, with spaces between."""


@dataclass(frozen=True)
class Definition:
    """A definition, and the number of other files that refer to its name."""

    file: str
    line: int
    kind: str
    name: str
    references: int
    """This number is shared among all definitions of the name."""


@dataclass(frozen=True)
class Ranking:
    """The most-referenced definitions of a folder, best first."""

    best: Sequence[Definition]
    total: int
    """The number of all definitions."""


@dataclass(frozen=True)
class Wanted:
    """The files to look at, by their paths from a folder."""

    folder: Path
    names: Sequence[str]
    unsaved: dict[str, str]
    """The texts of unsaved buffers, by the same paths."""


_facts: dict[str, Facts] = {}
_rankings: dict[tuple[str, int], tuple[int, Ranking]] = {}


def rank(
    program: Path, wanted: Wanted, most: int, cancellation: Cancellation
) -> tuple[Ranking, int]:
    """Return the `most` best definitions in files, and the number of files that are too large.

    What was found in a file is kept until its size or its time of change is another.
    """
    stamps, too_large = _stamps(wanted)
    top = f"{wanted.folder}/"
    changed = [
        name
        for name, stamp in stamps.items()
        if (kept := _facts.get(top + name)) is None or kept.stamp != stamp
    ]
    if len(_facts) + len(changed) > MOST_KEPT:
        _facts.clear()
        changed = list(stamps)
    _facts.update(_read(program, wanted, {name: stamps[name] for name in changed}, cancellation))
    key, state = (top, most), hash(tuple(stamps.items()))
    known = _rankings.get(key)
    if known is None or known[0] != state:
        facts = {name: found for name in stamps if (found := _facts.get(top + name)) is not None}
        known = (state, _ranked(facts, most, cancellation))
        if len(_rankings) >= MOST_RANKINGS:
            _rankings.clear()
        _rankings[key] = known
    return known[1], too_large


def _stamps(wanted: Wanted) -> tuple[dict[str, Stamp], int]:
    """Return the stamp of each plain file of code, and the number of those that are too large."""
    stamps: dict[str, Stamp] = {}
    too_large = 0
    for name in wanted.names:
        if name.endswith(NO_CODE):
            continue
        text = wanted.unsaved.get(name)
        try:
            found = os.lstat(f"{wanted.folder}/{name}")
        except OSError:
            continue
        if text is not None:
            stamps[name] = (hash(text), len(text))
        elif stat.S_ISREG(found.st_mode) and found.st_size > MOST_BYTES:
            too_large += 1
        elif stat.S_ISREG(found.st_mode):
            stamps[name] = (found.st_mtime_ns, found.st_size)
    return stamps, too_large


def _read(
    program: Path, wanted: Wanted, stamps: dict[str, Stamp], cancellation: Cancellation
) -> Iterator[tuple[str, Facts]]:
    """Yield path and facts of each file; read uses while ctags looks for definitions."""
    if not stamps:
        return
    saved = [name for name in stamps if name not in wanted.unsaved]
    with ThreadPoolExecutor(1) as pool:
        defined = pool.submit(definitions.of_files, program, wanted.folder, saved, cancellation)
        uses = {name: _uses(wanted, name, cancellation) for name in stamps}
        found = defined.result()
    texts = {name: wanted.unsaved[name] for name in stamps if name in wanted.unsaved}
    found |= definitions.of_texts(program, texts, cancellation)
    for name, stamp in stamps.items():
        facts = Facts(stamp, b"\n".join(found.get(name, ())), uses[name])
        yield f"{wanted.folder}/{name}", facts


def _uses(wanted: Wanted, name: str, cancellation: Cancellation) -> bytes:
    """Return what a file uses; nothing of one that is binary or cannot be read."""
    cancellation.check()
    if name in wanted.unsaved:
        data = wanted.unsaved[name].encode("utf-8", "replace")
    else:
        try:
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
            descriptor = os.open(f"{wanted.folder}/{name}", flags)
        except OSError:
            return b""
        try:
            data = os.read(descriptor, MOST_BYTES)
        finally:
            os.close(descriptor)
    return b"" if b"\0" in data[:BINARY_WITHIN] else find_uses(name, data)


def _ranked(facts: dict[str, Facts], most: int, cancellation: Cancellation) -> Ranking:
    """Return the definitions that most other files refer to; of equal ones the first."""
    packed = {
        file: found.definitions.split(b"\n") if found.definitions else []
        for file, found in facts.items()
    }
    forms = {file: [line.split(b"\t", 1)[0] for line in lines] for file, lines in packed.items()}
    times = Counter(chain.from_iterable(forms.values()))
    every, using = set(times), Counter[bytes]()
    for file, found in facts.items():
        cancellation.check()
        using.update(every.intersection(split_uses(found.uses)).difference(forms[file]))
    references = {form: using[form] // times[form] for form in times}
    rows = (
        (references[form], file, line)
        for file, lines in packed.items()
        for form, line in zip(forms[file], lines, strict=True)
    )
    best = nlargest(most, rows, key=itemgetter(0))
    return Ranking([_definition(file, line, many) for many, file, line in best], times.total())


def _definition(file: str, packed: definitions.Packed, references: int) -> Definition:
    name, kind, line, scope = definitions.unpack(packed)
    return Definition(file, line, kind, f"{scope}.{name}" if scope else name, references)
