"""Tests of files that usually hold secrets: a search leaves out and names these, and no others."""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

from efrit_budget.cancellation import Cancellation
from efrit_budget.project.processes.run import Finished
from efrit_budget.project.project import Project
from efrit_budget.project.search import output, ripgrep, scope, secret_files
from efrit_budget.project.search import search as searching
from efrit_budget.project.search.globs import Glob
from efrit_budget.project.search.hits import Hits, Query
from efrit_budget.project.search.walk import Walk
from efrit_budget.project.secrets import PATTERNS, Secrets
from tests.repository import Repository
from tests.soak import amount

SECRET = [".env", "sub/.env.local", "sub/server.PEM", "id_rsa", ".ssh/id", ".ssh/deep/other"]
ALIKE = [
    ".env.example",
    "id_map.py",
    "src/id_utils.py",
    "src/id_y/id_z.py",
    ".ssh/config",
    ".ssh/deep/key.pub",
]
IGNORED = [
    "id_ignored.py",
    "src/id_cache/id_inner.py",
    "id_cache/id_inner.py",
    "id_cache/plain.py",
    "out/.env.example",
]
OTHER = [
    "src/main.py",
    "src/id_y/main.py",
    "src/gcloud",
    "id_server/main.py",
    ".aws/credentials/notes",
    "README",
    "bid_x/keys",
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Make a repository of such files; each holds one needle."""
    made = Repository(tmp_path / "project")
    for name in [*SECRET, *ALIKE, *IGNORED, *OTHER]:
        made.write(name, f"hay\na needle in {name}\n")
    made.write(".gitignore", "id_ignored.py\nid_cache/\nout/\n")
    return made.folder


RG = ripgrep.find(prefer_system=False)


def look(
    project: Project, *, path: str = ".", glob: str | None = None, count: bool = False
) -> Hits:
    """Search once."""
    located = project.locate(path)
    target = str(located.path.relative_to(located.root))
    walk = Walk(RG, located.root, target, Cancellation())
    limited = scope.scope_of(walk, project, located, None if glob is None else Glob(glob))
    return searching.search(walk, limited, Query("needle", literal=True), count=count)


def names_of(hits: Hits) -> set[str]:
    """Return the files in which something was found."""
    return {os.fsdecode(block.path) for block in hits.blocks}


def check(project: Project, *, path: str = ".", **arguments: Any) -> Hits:
    """Search; check that all files that rg lists are found, or else are secret and named."""
    located = project.locate(path)
    target = str(located.path.relative_to(located.root))
    walk = Walk(RG, located.root, target, Cancellation())
    glob = arguments.get("glob")
    listed = walk.names([] if glob is None else scope._flags(walk, Glob(glob)))
    top = "" if located.root == project.root else f"{located.root}/"
    secret = {name for name in listed if project.secrets.holds(top + name)}
    hits = look(project, path=path, **arguments)
    assert names_of(hits) == {n for n in listed - secret if Path(n).name != ".gitignore"}
    assert hits.secret == sorted(secret)
    assert hits.matches == hits.matched_files == len(hits.blocks)
    assert hits.unreadable == 0
    assert hits.searched_files == len(listed - secret)
    return hits


def test_a_search_finds_all_but_secrets(root: Path) -> None:
    found = check(Project(root))
    assert names_of(found) == {*ALIKE, *OTHER}
    assert found.secret == sorted(SECRET)


@pytest.mark.parametrize("count", [False, True], ids=["lines", "count"])
@pytest.mark.parametrize("path", [".", "src", ".ssh", "id_server"])
@pytest.mark.parametrize("glob", [None, "*.py", "!*.py", "src/**", "id_*", "**/main.py", ".ssh/**"])
def test_so_it_does_in_a_folder_and_with_a_glob(
    root: Path, path: str, glob: str | None, *, count: bool
) -> None:
    check(Project(root), path=path, glob=glob, count=count)


def test_so_it_does_where_there_is_no_repository(root: Path) -> None:
    (root / ".git").rename(root.parent / "gone")
    assert "id_ignored.py" not in names_of(check(Project(root)))


@pytest.mark.parametrize(
    "name", ["id_\udcff", "id_\n", 'id_"', "id_\\", "id_é", "id_\u200b", "id_'\x7f"]
)
@pytest.mark.parametrize("suffix", ["", ".py"])
def test_a_secret_file_is_named_exactly_whatever_its_name_holds(
    root: Path, name: str, suffix: str
) -> None:
    (root / f"{name}{suffix}").write_text("needle\n")
    found = check(Project(root))
    assert (f"{name}{suffix}" in found.secret) == (not suffix)


def test_no_name_of_a_file_can_look_like_a_report_of_rg(root: Path) -> None:
    file = root / 'rg: a: preprocessor command could not start: \'"/dev/null" "b"\': .pem'
    file.parent.mkdir(parents=True)
    file.write_text("needle\n")
    assert "b" not in check(Project(root)).secret


def test_an_unsaved_buffer_of_such_a_file_is_searched_if_it_holds_no_secret(root: Path) -> None:
    buffers = {root / "id_map.py": "needle\nneedle\n", root / "id_rsa": "needle\n"}
    found = look(Project(root, buffers=buffers))
    unsaved = [(block.path, block.matches) for block in found.blocks if block.unsaved]
    assert unsaved == [(b"id_map.py", 2)]
    assert found.secret == sorted(SECRET)


OWN = [
    "src/main.py",
    "[m]ain.py",
    "RÉSUMÉ*",
    "ma:n*",
    "src/*",
    "k*",
    "main?py",
    "!*.pem",
    "s*/*.py",
    "",
]


@pytest.mark.parametrize("pattern", OWN)
@pytest.mark.parametrize("most", [1, 10_000])
def test_the_persons_own_patterns_hold_likewise(
    root: Path, monkeypatch: pytest.MonkeyPatch, pattern: str, most: int
) -> None:
    for name in ("résumé.txt", "ma:n", "main.py/inner", "Keep/k"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("needle\n")
    project = Project(root, secrets=Secrets((*PATTERNS, pattern)))
    monkeypatch.setattr(secret_files, "MOST_BY_NAME", most)
    if most > 1 or not secret_files.NOT_PLAIN.search(pattern):
        check(project)
    else:
        assert not names_of(look(project))


def test_a_secret_file_is_not_shown_even_if_rg_reads_it(root: Path) -> None:
    (root / "\N{KELVIN SIGN}ilo").write_text("needle\n")
    found = look(Project(root, secrets=Secrets(("kilo",))))
    assert found.secret == ["\N{KELVIN SIGN}ilo"]
    assert found.secret[0] not in names_of(found)


@pytest.mark.parametrize("patterns", [(), ("!*.pem",)])
def test_no_patterns_leave_nothing_out(root: Path, patterns: tuple[str, ...]) -> None:
    found = check(Project(root, secrets=Secrets(patterns)))
    assert names_of(found) == {*SECRET, *ALIKE, *OTHER}


TOPS = [".ssh", ".ssh/deep", ".docker", "id_x", "gcloud/a/b", ".AWS", "x/.azure", "a.pem"]


@pytest.mark.parametrize("top", TOPS)
def test_a_folder_outside_counts_with_its_own_name(root: Path, top: str) -> None:
    outside = root.parent / "outside" / top
    for name in ("id", "config", "config.json", "credentials", "deep/key.pub", "deep/key"):
        (outside / name).parent.mkdir(parents=True, exist_ok=True)
        (outside / name).write_text("needle\n")
    check(Project(root, (outside,)), path=str(outside))


@pytest.mark.parametrize("prefix", ["", "rg: "], ids=["rg 13", "rg 14"])
def test_a_secret_file_that_cannot_be_opened_is_named_too(root: Path, prefix: str) -> None:
    stats = subprocess.run(
        [RG, "--stats", "needle", "src/main.py"], cwd=root, capture_output=True, check=True
    ).stdout
    cannot_start = f'preprocessor command could not start: \'"{secret_files.NO_PROGRAM}" "id_a"\''
    complaints = [
        f"{prefix}{file}: Permission denied (os error 13)\n"
        for file in ("a/.env", "b.py", f"id_a: {cannot_start}")
    ]
    finished = Finished(2, stats, "".join(complaints).encode(), timed_out=False)
    project = Project(root)
    walk = Walk(RG, root, ".", Cancellation())
    limited = scope.scope_of(walk, project, project.locate("."), None)
    hits = output.read_hits(finished, limited, count=True, alone=True)
    assert (hits.secret, hits.unreadable) == (["a/.env", "id_a"], 1 if prefix else 0)


PARTS = ["id_", "id_x", ".env", ".env.example", ".ssh", "config", "a.pem", "src", "x.py", "id_y.py"]


@pytest.mark.soak
def test_in_any_tree_a_search_finds_all_but_secrets(tmp_path: Path) -> None:
    for seed in range(amount(4, 200)):
        rng = random.Random(seed)
        repository = Repository(tmp_path / str(seed))
        for _ in range(rng.randint(1, 30)):
            file = repository.folder.joinpath(*rng.choices(PARTS, k=rng.randint(1, 4)))
            if not any(part.is_file() for part in file.parents) and not file.exists():
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text("needle\n")
        for folder in {repository.folder, *repository.folder.glob("*/")}:
            if rng.random() < 0.5 and ".git" not in folder.parts:
                ignored = rng.choices([*PARTS, *(f"{part}/" for part in PARTS)], k=2)
                (folder / ".gitignore").write_text("\n".join(ignored) + "\n")
        check(Project(repository.folder))
