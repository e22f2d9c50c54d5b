"""A git repository of 10,000 files with a history, made once from the machine's own sources."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks.corpora_files import files_by_kind
from tests.benchmarks.corpora_git import births, commit, grown, histories
from tests.benchmarks.corpora_texts import read, stable
from tests.benchmarks.packages import CACHE

FILES = 10_000
COMMITS = 60
TOUCHED = 900
LARGEST = 9_000
SEED = 20261118
KINDS = {
    "python": 3_600,
    "elisp": 1_500,
    "c": 1_200,
    "javascript": 700,
    "markdown": 600,
    "rst": 500,
    "json": 500,
    "shell": 300,
    "css": 200,
    "configuration": 400,
}
FOLDER = CACHE / "session-repository-1"


def repository() -> Path:
    """Return the repository's folder; create the repository the first time."""
    if not FOLDER.exists():
        unfinished = FOLDER.with_name(FOLDER.name + ".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        _git(unfinished, "init", "-q", "-b", "main")
        _git(unfinished, "fast-import", "--quiet", given=_stream(_files()))
        _git(unfinished, "reset", "-q", "--hard", "main")
        unfinished.rename(FOLDER)
    return FOLDER


def _git(folder: Path, *arguments: str, given: str = "") -> None:
    command = ["git", "-C", str(folder), *arguments]
    subprocess.run(command, input=given.encode(), check=True)


def _files() -> dict[str, str]:
    """Return paths and texts; other kinds make up for those that the machine lacks."""
    found: dict[str, str] = {}
    everything = list(_bodies(1))
    while len(found) < FILES:
        for path, body in everything or [("src/empty.py", "pass\n")]:
            if len(found) == FILES:
                break
            stem, dot, ending = path.rpartition(".")
            again = path if path not in found else f"{stem}_{len(found)}{dot}{ending}"
            found[again] = body
    return found


def _bodies(least: int) -> Iterator[tuple[str, str]]:
    by_kind = files_by_kind()
    for (kind, _), origins in sorted(by_kind.items()):
        files = sorted(
            ((origin, path) for origin, paths in origins.items() for path in paths),
            key=lambda found: stable(found[1].name),
        )
        for origin, path in files[: KINDS.get(kind, 0)]:
            body = _cut(read(path))
            if len(body) >= least:
                name = path.name.removesuffix(".gz").replace(" ", "_")
                yield f"{kind}/{origin.replace(' ', '_')}/{path.parent.name}/{name}", body


def _cut(body: str) -> str:
    """Return whole lines from the start of a file, up to the size limit."""
    return body if len(body) <= LARGEST else body[: body.rfind("\n", 0, LARGEST) + 1]


def _stream(files: dict[str, str]) -> str:
    """Return the history for fast-import, in which some files grow by runs of lines."""
    rng = random.Random(SEED)
    history = max(histories(held_out=False), key=lambda one: len(one.messages))
    touched = rng.sample(sorted(files), min(TOUCHED, len(files)))
    born = {path: births(files[path], rng) for path in touched}
    first = files | {path: grown(files[path], 0, born[path]) for path in touched}
    commits = [commit(0, history, rng, first)]
    for at in range(1, COMMITS):
        some = rng.sample(touched, rng.randint(2, 25))
        commits.append(
            commit(at, history, rng, {path: grown(files[path], at, born[path]) for path in some})
        )
    return "".join(commits)
