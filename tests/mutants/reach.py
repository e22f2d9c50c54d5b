"""The lines that each test reaches, recorded in one run of the tests and stored in a file."""

from __future__ import annotations

import ast
import gzip
import hashlib
import json
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.mutants.child import run_pytest
from tests.mutants.sites import Site, module_of

LOADING = ""
"""The name in a record for lines reached outside of all tests, when modules are loaded."""


class RecordError(Exception):
    """There is no record of reached lines, or it does not fit the code."""


@dataclass
class Reach:
    """The lines that each test reaches, and the time it takes."""

    root: Path
    rooms: tuple[str, ...]
    files: dict[str, str] = field(default_factory=dict)
    """The digest of each file of the rooms at the time of the record."""
    seconds: dict[str, float] = field(default_factory=dict)
    places: dict[str, set[str]] = field(default_factory=dict)

    def tests_for(self, site: Site) -> list[str]:
        """Return the tests that reach a site: those of its room first, then the fastest.

        Code that runs on loading counts as reached by all tests that reach its file, or one that
        imports from it.
        """
        place = f"{site.module}:{site.reached_at}"
        wanted = {place}
        if site.reached_at is None or place in self.places.get(LOADING, ()):
            near = {site.module, *self._importers(site.module)}
            wanted |= {one for one in self._all_places() if one.partition(":")[0] in near}
        found = [test for test in self.seconds if not wanted.isdisjoint(self.places[test])]
        room = f"tests/{Path(site.path).parent.name}/"
        return sorted(found, key=lambda test: (not test.startswith(room), self.seconds[test]))

    def _all_places(self) -> set[str]:
        return set().union(*self.places.values())

    def _importers(self, module: str) -> Iterator[str]:
        for path in self.files:
            if module in _imported(self.root / path):
                yield module_of(Path(path))

    def check(self) -> None:
        """Raise `RecordError` if the record is of other code."""
        changed = [
            path
            for path, digest in _digests(self.root, self.rooms).items()
            if self.files.get(path) != digest
        ]
        if changed:
            raise RecordError(f"not recorded as it is now: {', '.join(changed)}; use --record")

    def save(self, file: Path) -> None:
        """Write the record."""
        names = sorted(self._all_places())
        numbers = {name: number for number, name in enumerate(names)}
        kept = {
            "files": self.files,
            "seconds": self.seconds,
            "names": names,
            "places": {
                test: sorted(numbers[place] for place in places)
                for test, places in self.places.items()
            },
        }
        file.parent.mkdir(parents=True, exist_ok=True)
        with gzip.open(file, "wt", encoding="utf-8") as out:
            json.dump(kept, out)


def loaded(root: Path, rooms: Sequence[str], file: Path) -> Reach:
    """Read a record; without the file it is an empty one."""
    if not file.exists():
        return Reach(root, tuple(rooms))
    with gzip.open(file, "rt", encoding="utf-8") as text:
        kept = json.load(text)
    names = kept["names"]
    places = {test: {names[at] for at in numbers} for test, numbers in kept["places"].items()}
    return Reach(root, tuple(rooms), kept["files"], kept["seconds"], places)


def record(reach: Reach, tests: Sequence[str], jobs: int) -> list[str]:
    """Run tests and replace what was recorded about them.

    Returns the tests that did not pass, which judge nothing. A record of other code is begun anew.
    """
    digests = _digests(reach.root, reach.rooms)
    if reach.files != digests:
        reach.files, reach.seconds, reach.places = digests, {}, {}
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        folder = Path(name)
        ends = _run(reach, tests, jobs, folder)
        found = _noted(folder / "noted")
    for test in [test for test in reach.seconds if _is_among(test, tests)]:
        del reach.seconds[test]
    for test, end in ends.items():
        if end["passed"]:
            reach.seconds[test] = end["seconds"]
    loading = reach.places.get(LOADING, set()) | found.get(LOADING, set())
    reach.places = {test: found.get(test, reach.places.get(test, set())) for test in reach.seconds}
    reach.places[LOADING] = loading
    return sorted(test for test, end in ends.items() if not end["passed"])


def _run(
    reach: Reach, tests: Sequence[str], jobs: int, folder: Path
) -> dict[str, dict[str, float]]:
    noted, ends, output = folder / "noted", folder / "ends", folder / "output"
    noted.mkdir()
    environment = {
        "MUTANT_RECORD": str(noted),
        "MUTANT_PACKAGES": ",".join(room.replace("/", ".") for room in reach.rooms),
        "MUTANT_TESTS": str(ends),
    }
    arguments = ["-p", "mutants_recording", *(["-n", str(jobs)] if jobs > 1 else []), *tests]
    code = run_pytest(reach.root, arguments, environment, output)
    if code not in (0, 1):
        raise RecordError(f"the tests did not run: {output.read_text(errors='replace')[-4000:]}")
    found: dict[str, dict[str, float]] = json.loads(ends.read_bytes())
    return found


def _noted(folder: Path) -> dict[str, set[str]]:
    """Gather the records of all processes."""
    found: dict[str, set[str]] = defaultdict(set)
    for file in folder.iterdir():
        places = found[LOADING]
        for line in file.read_text(encoding="utf-8").splitlines():
            if line.startswith("test "):
                places = found[line.removeprefix("test ")]
            else:
                places.add(line)
    return found


def _is_among(test: str, chosen: Sequence[str]) -> bool:
    """Return whether a test is one of, or lies in one of, the chosen folders, files and tests."""
    return any(
        test == one or test.startswith((f"{one.rstrip('/')}/", f"{one}::")) for one in chosen
    )


def _digests(root: Path, rooms: Sequence[str]) -> dict[str, str]:
    files = sorted(file for room in rooms for file in (root / room).rglob("*.py"))
    return {
        file.relative_to(root).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()[:16]
        for file in files
    }


def _imported(file: Path) -> set[str]:
    """Return the modules that a file imports, or imports from."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found
