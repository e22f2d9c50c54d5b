"""Tests of files that are called as secret ones are: the first search finds what others find."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from efrit_budget.cancellation import Cancellation
from efrit_budget.project.project import Project
from efrit_budget.project.search import ripgrep, scope, secret_files
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


@dataclass(frozen=True)
class Found:
    """What a search came to, and what it did not look at."""

    hits: Hits
    secret: tuple[str, ...]

    @property
    def names(self) -> set[str]:
        """The files in which something was found."""
        return {block.path.decode("utf-8", "surrogateescape") for block in self.hits.blocks}


Look = Callable[..., Found]


@pytest.fixture
def latest(monkeypatch: pytest.MonkeyPatch) -> secret_files._Latest:
    """Have nothing been looked for yet."""
    made = secret_files._Latest()
    monkeypatch.setattr(scope, "LATEST", made)
    return made


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Make a repository of such files; each holds one needle."""
    made = Repository(tmp_path / "project")
    for name in [*SECRET, *ALIKE, *IGNORED, *OTHER]:
        made.write(name, f"hay\na needle in {name}\n")
    made.write(".gitignore", "id_ignored.py\nid_cache/\nout/\n")
    return made.folder


def look(
    project: Project, *, path: str = ".", glob: str | None = None, count: bool = False
) -> Found:
    """Search once."""
    located = project.locate(path)
    target = str(located.path.relative_to(located.root))
    rg = ripgrep.find(prefer_system=False)
    walk = Walk(rg, located.root, target, Cancellation())
    limited = scope.scope_of(walk, project, located, None if glob is None else Glob(glob))
    hits = searching.search(walk, limited, Query("needle", literal=True), count=count)
    return Found(hits, tuple(limited.listing.result().covered))


def look_in_order(project: Project, monkeypatch: pytest.MonkeyPatch, **arguments: object) -> Found:
    """Search once it is known which files hold secrets."""
    with monkeypatch.context() as patch:
        patch.setattr(scope, "LATEST", secret_files._Latest())
        patch.setattr(secret_files.SecretNames, "flags", None)
        return look(project, **arguments)  # type: ignore[arg-type]


@pytest.mark.usefixtures("latest")
def test_the_first_search_finds_all_but_secrets(root: Path) -> None:
    found = look(Project(root))
    assert found.names == {*ALIKE, *OTHER}
    assert found.secret == tuple(sorted(SECRET))
    assert found.hits.matches == found.hits.matched_files == len(ALIKE) + len(OTHER)


@pytest.mark.usefixtures("latest")
@pytest.mark.parametrize("count", [False, True], ids=["lines", "count"])
@pytest.mark.parametrize("path", [".", "src", ".ssh", "id_server"])
@pytest.mark.parametrize("glob", [None, "*.py", "!*.py", "src/**", "id_*", "**/main.py"])
def test_the_first_search_is_as_the_second(
    root: Path, monkeypatch: pytest.MonkeyPatch, path: str, glob: str | None, *, count: bool
) -> None:
    project = Project(root)
    first = look(project, path=path, glob=glob, count=count)
    assert look(project, path=path, glob=glob, count=count) == first
    assert look_in_order(project, monkeypatch, path=path, glob=glob, count=count) == first


@pytest.mark.usefixtures("latest")
def test_so_it_is_where_there_is_no_repository(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / ".git").rename(root.parent / "gone")
    project = Project(root)
    assert look(project) == look(project) == look_in_order(project, monkeypatch)
    assert "id_ignored.py" not in look(project).names


@pytest.mark.usefixtures("latest")
@pytest.mark.parametrize("most", ["MOST_ALIKE", "MOST_FOLDERS"])
def test_so_it_is_where_there_are_many(
    root: Path, monkeypatch: pytest.MonkeyPatch, most: str
) -> None:
    for module in (searching, secret_files):
        if hasattr(module, most):
            monkeypatch.setattr(module, most, 1)
    project = Project(root)
    first = look(project)
    assert first == look(project)
    assert first.names == {*ALIKE, *OTHER}


@pytest.mark.usefixtures("latest")
def test_folders_called_like_secret_files_are_searched_where_these_are_many(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secret_files, "MOST_BY_NAME", 1)
    for _ in range(2):
        found = look(Project(root)).names
        assert {"id_server/main.py", "src/id_y/main.py"} < found
        assert not found & set(SECRET)


@pytest.mark.usefixtures("latest")
def test_names_that_are_not_utf_8_are_found_too(root: Path) -> None:
    (root / "id_\udcff.py").write_text("needle\n")
    (root / "id_a.py").write_text("needle\n")
    first = look(Project(root))
    assert {"id_\udcff.py", "id_a.py"} < first.names
    assert look(Project(root)) == first


@pytest.mark.usefixtures("latest")
def test_what_emacs_holds_of_them_is_searched_once(root: Path) -> None:
    project = Project(root, buffers={root / "id_map.py": "needle\nneedle\n"})
    first = look(project)
    assert first == look(project)
    assert [b.matches for b in first.hits.blocks if b.path == b"id_map.py"] == [2]
    assert [b.unsaved for b in first.hits.blocks if b.path == b"id_map.py"] == [True]


@pytest.mark.usefixtures("latest")
@pytest.mark.parametrize("pattern", ["src/main.py", "[m]ain.py", "RÉSUMÉ*", "ma:n*", "src/*", "k*"])
def test_the_persons_own_patterns_hold_likewise(
    root: Path, monkeypatch: pytest.MonkeyPatch, pattern: str
) -> None:
    for name in ("résumé.txt", "ma:n", "main.py/inner", "\N{KELVIN SIGN}ey", "Keep/k"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("needle\n")
    project = Project(root, secrets=Secrets((*PATTERNS, pattern)))
    first = look(project)
    assert first == look(project) == look_in_order(project, monkeypatch)
    assert not any(project.secrets.holds(name) for name in first.names)


@pytest.mark.usefixtures("latest")
def test_no_patterns_leave_nothing_out(root: Path) -> None:
    found = look(Project(root, secrets=Secrets(())))
    assert found.names == {*SECRET, *ALIKE, *OTHER}


@pytest.mark.usefixtures("latest")
def test_a_folder_outside_that_is_called_as_a_secret_one_is_left_out(root: Path) -> None:
    outside = root.parent / ".ssh"
    outside.mkdir()
    (outside / "id").write_text("needle\n")
    (outside / "config").write_text("needle\n")
    project = Project(root, (outside,))
    assert look(project, path=str(outside)).names == {"config"}


PARTS = ["id_", "id_x", ".env", ".env.example", ".ssh", "config", "a.pem", "src", "x.py", "id_y.py"]


@pytest.mark.usefixtures("latest")
@pytest.mark.soak
def test_in_any_tree_the_first_search_is_as_the_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
        project = Project(repository.folder)
        first = look(project)
        assert first == look(project) == look_in_order(project, monkeypatch), seed
