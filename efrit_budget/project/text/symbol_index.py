"""Rank the definitions in many files by the number of other files that use them."""

import os
import re
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from heapq import nlargest
from pathlib import Path
from typing import NamedTuple

from efrit_budget.cancellation import Cancellation
from efrit_budget.project.text import ctags, definitions

MOST_BYTES = 512 * 1024
"""Larger files, which are mostly generated, are left out."""
MOST_KEPT = 50_000
"""The most files of which the definitions and words are kept for the next time."""
MOST_RANKINGS = 4
BINARY_WITHIN = 8 * 1024
LISP = (".el", ".lisp", ".lsp", ".cl", ".scm", ".ss", ".rkt", ".clj", ".cljs", ".cljc", ".fnl")
NO_CODE = (
    *(".md", ".rst", ".txt", ".org", ".adoc", ".tex", ".html", ".htm", ".xml", ".svg", ".css"),
    *(".scss", ".less", ".json", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".csv", ".po", ".lock"),
)
"""The endings of texts and data, which are not looked at."""
HASH = (".py", ".pyi", ".rb", ".cr", ".sh", ".pl", ".pm", ".r", ".jl", ".ex", ".exs", ".nim")
"""The endings of files in which `#` begins a comment."""
BEHIND_MODULES = (".go", ".ex", ".exs")
"""The endings of files that call functions of other files behind the name of a module."""
METHODS = frozenset(map(str.encode, definitions.METHODS))
FUNCTIONS = frozenset(map(str.encode, definitions.FUNCTIONS))
TEXTS = (
    rb'"(?:""(?:[^"]++|"(?!""))*+"""|(?:[^"\\\n]++|\\.)*+")'
    rb"|'(?:[^'\\\n]++|\\.)*+'"
)
USE = rb"|(\.?[A-Za-z_$\x80-\xff][\w$\x80-\xff]*+\(?)"
HASH_USES = re.compile(TEXTS + rb"|#[^\n]*+" + USE)
USES = re.compile(TEXTS + rb"|//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+\*/" + USE)
LISP_USES = re.compile(
    rb'"(?:\\[\s\S]|[^"\\])*"|;[^\n]*|\\.|([(\']?[A-Za-z_*+\x80-\xff][\w$*+!?<>=/\x80-\xff-]*)'
)
"""These find names as they are used, with what shows a call, outside of comments and strings."""

Stamp = tuple[int, int]
"""Time of change and size of a file; hash and length of an unsaved buffer."""


class Facts(NamedTuple):
    """What one file defines and uses, packed as bytes to take little memory."""

    stamp: Stamp
    definitions: bytes
    """The packed definitions, a line each."""
    uses: bytes
    """The distinct names in the file, and the distinct calls: `name(`, `.name(`."""


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


class Row(NamedTuple):
    """A definition, and the forms in which other files refer to it."""

    forms: tuple[bytes, ...]
    file: str
    packed: definitions.Packed


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
    for name, stamp in stamps.items():
        if name in wanted.unsaved:
            tags = ctags.tags(program, name, wanted.unsaved[name], cancellation)
            found[name] = definitions.of_tags(tags)
        facts = Facts(stamp, b"\n".join(found.get(name, ())), uses[name])
        yield f"{wanted.folder}/{name}", facts


def _uses(wanted: Wanted, name: str, cancellation: Cancellation) -> bytes:
    """Return what a file uses; nothing of one that is binary or cannot be read."""
    cancellation.check()
    if name in wanted.unsaved:
        data = wanted.unsaved[name].encode("utf-8", "replace")
    else:
        try:
            descriptor = os.open(
                f"{wanted.folder}/{name}", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
            )
        except OSError:
            return b""
        with open(descriptor, "rb") as file:
            data = file.read(MOST_BYTES)
    if b"\0" in data[:BINARY_WITHIN]:
        return b""
    found = set(_pattern(name).findall(data))
    found |= {use.strip(b".('") for use in found}
    return b" ".join(found)


def _pattern(name: str) -> re.Pattern[bytes]:
    """Return the regex that finds what is used in a file of this name."""
    if name.endswith(LISP):
        return LISP_USES
    return HASH_USES if name.endswith(HASH) else USES


def _ranked(facts: dict[str, Facts], most: int, cancellation: Cancellation) -> Ranking:
    """Return the definitions that most other files refer to; of equal ones the first."""
    rows = {
        file: [Row(_forms(packed, file), file, packed) for packed in found.definitions.split(b"\n")]
        for file, found in facts.items()
        if found.definitions
    }
    every = [row for of_file in rows.values() for row in of_file]
    times = Counter(row.forms for row in every)
    wanted = {form for forms in times for form in forms}
    using: Counter[bytes] = Counter()
    own: Counter[tuple[bytes, ...]] = Counter()
    for file, found in facts.items():
        cancellation.check()
        here = wanted.intersection(found.uses.split(b" "))
        using.update(here)
        own.update({row.forms for row in rows.get(file, ()) if not here.isdisjoint(row.forms)})

    def references(row: Row) -> int:
        others = max(using[form] for form in row.forms) - own[row.forms]
        return max(0, others) // times[row.forms]

    best = nlargest(most, every, key=references)
    return Ranking([_definition(row, references(row)) for row in best], len(every))


def _forms(packed: definitions.Packed, file: str) -> tuple[bytes, ...]:
    """Return the forms in which other files refer to a definition: calls, or any use of a type."""
    name, kind, _ = packed.split(b"\t", 2)
    if file.endswith(LISP):
        return (b"(" + name, b"'" + name)
    if kind in METHODS:
        return (b"." + name + b"(",)
    if kind in FUNCTIONS and file.endswith(BEHIND_MODULES):
        return (name + b"(", b"." + name + b"(")
    if kind in FUNCTIONS:
        return (name + b"(",)
    return (name,)


def _definition(row: Row, references: int) -> Definition:
    name, kind, line, scope = definitions.unpack(row.packed)
    return Definition(row.file, line, kind, f"{scope}.{name}" if scope else name, references)
