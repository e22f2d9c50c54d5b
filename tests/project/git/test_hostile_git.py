"""Repositories that lead out of the project: nothing outside is shown, and nothing hangs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from efrit_budget.cancellation import Cancellation
from efrit_budget.project import file_cache
from efrit_budget.project.git.repository import open_repository
from efrit_budget.project.processes import landlock, programs
from tests.connection import Connection
from tests.repository import Repository
from tests.soak import stride

PRIVATE = "xyzzy"
"""A text in every file outside the project."""
ASKED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("vcs_log", {"stat": True}),
    ("vcs_status", {}),
    ("vcs_diff", {}),
    ("vcs_blame", {"path": "a.txt"}),
    ("vcs_show", {"revision": "main"}),
    ("vcs_show", {"revision": "main:a.txt"}),
    ("search_content", {"pattern": "one"}),
    ("project_files", {}),
)[:: stride(3)]


@dataclass(frozen=True)
class Place:
    """A project with a repository, and another repository that is private."""

    mine: Repository
    private: Repository
    secret: Path
    """A file outside of any repository."""
    commit: str
    """The newest commit of the private repository."""

    @property
    def git(self) -> Path:
        """The folder of the project's repository."""
        return self.mine.folder / ".git"

    def replace(self, name: str, target: Path) -> None:
        """Replace a file of the project's repository by a link."""
        place = Path(os.path.normpath(self.git / name))
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)
        place.symlink_to(target)

    def pipe(self, name: str) -> None:
        """Replace a file of the project's repository by a pipe."""
        place = self.git / name
        place.unlink(missing_ok=True)
        os.mkfifo(place)

    def point(self, text: bytes) -> None:
        """Replace `.git` by a file with this text."""
        shutil.rmtree(self.git)
        self.git.write_bytes(text)

    def configure(self, name: str, value: object) -> None:
        """Change a setting of the project's repository."""
        self.mine.git("config", name, str(value))

    def lend(self, objects: Path | str) -> None:
        """Borrow objects from a folder, and point the branch at one of them."""
        (self.git / "objects/info").mkdir(exist_ok=True)
        (self.git / "objects/info/alternates").write_text(f"{objects}\n")
        self.adopt()

    def adopt(self) -> None:
        """Point the branch at the private commit."""
        (self.git / "refs/heads/main").write_text(f"{self.commit}\n")

    def adopt_through(self, name: str) -> None:
        """Replace a part of the repository by a link to the private one's."""
        self.replace(name, self.private.folder / ".git" / name)
        self.adopt()

    def lend_twice(self) -> None:
        """Borrow from a folder inside that borrows from one outside."""
        inner = self.mine.folder / "inner/objects"
        (inner / "info").mkdir(parents=True)
        (inner / "info/alternates").write_text(f"{self.private.folder}/.git/objects\n")
        self.lend("../../inner/objects")

    def link_objects_one_by_one(self) -> None:
        """Link each private object, and point the branch at the commit."""
        for folder in (self.private.folder / ".git/objects").glob("??"):
            for file in folder.iterdir():
                (self.git / "objects" / folder.name).mkdir(exist_ok=True)
                target = self.git / "objects" / folder.name / file.name
                target.unlink(missing_ok=True)
                target.symlink_to(file)
        self.adopt()

    def include(self) -> None:
        """Include a file outside in the settings."""
        self.configure("include.path", self.secret)

    def nest(self) -> None:
        """Add a folder to the project that leads to the private repository."""
        inner = self.mine.folder / "nested"
        inner.mkdir()
        (inner / ".git").write_text(f"gitdir: {self.private.folder}/.git\n")


Way = Callable[[Place], object]


def _outer(place: Place, name: str) -> Path:
    return place.private.folder / ".git" / name


WAYS: dict[str, Way] = {
    "a pointer with NUL": lambda p: p.point(f"gitdir: {_outer(p, '')}\0x\n".encode()),
    "a pointer with a newline": lambda p: p.point(f"gitdir: {_outer(p, '')}\n\nx\n".encode()),
    "a pointer to a private repository": lambda p: p.point(f"gitdir: {_outer(p, '')}\n".encode()),
    "a pointer that is a link": lambda p: p.replace("../.git", p.secret),
    "a .git that is a link": lambda p: p.replace("../.git", _outer(p, "")),
    "commondir with NUL": lambda p: (p.git / "commondir").write_text(f"{_outer(p, '')}\0"),
    "commondir with a newline": lambda p: (p.git / "commondir").write_text(f"{_outer(p, '')}\nx"),
    "commondir": lambda p: (p.git / "commondir").write_text(f"{_outer(p, '')}\n"),
    "commondir that is a pipe": lambda p: p.pipe("commondir"),
    "linked objects": lambda p: p.adopt_through("objects"),
    "linked refs": lambda p: p.replace("refs", _outer(p, "refs")),
    "linked packs": lambda p: p.adopt_through("objects/pack"),
    "alternates": lambda p: p.lend(_outer(p, "objects")),
    "alternates of alternates": Place.lend_twice,
    "a linked index": lambda p: p.replace("index", _outer(p, "index")),
    "a linked shallow": lambda p: p.replace("shallow", p.secret),
    "linked packed-refs": lambda p: p.replace("packed-refs", p.secret),
    "linked grafts": lambda p: p.replace("info/grafts", p.secret),
    "a linked HEAD": lambda p: p.replace("HEAD", p.secret),
    "a linked config": lambda p: p.replace("config", p.secret),
    "a linked branch": lambda p: p.replace("refs/heads/main", p.secret),
    "a linked commit graph": lambda p: p.replace("objects/info/commit-graph", p.secret),
    "a linked exclude": lambda p: p.replace("info/exclude", Path("/dev/zero")),
    "an included file": Place.include,
    "revisions to ignore": lambda p: p.configure("blame.ignoreRevsFile", p.secret),
    "a work tree elsewhere": lambda p: p.configure("core.worktree", p.private.folder),
    "an endless list of excludes": lambda p: p.configure("core.excludesFile", "/dev/zero"),
    "packed-refs that are a pipe": lambda p: p.pipe("packed-refs"),
    "a config that is a pipe": lambda p: p.pipe("config"),
    "a HEAD that is a pipe": lambda p: p.pipe("HEAD"),
    "a nested pointer": Place.nest,
    "a linked object": Place.link_objects_one_by_one,
}
ALWAYS_SETTLED_NS = -(10**15)
NEED_LANDLOCK = {"a linked object"}
"""The cases that need Landlock, because git opens each object only when it needs it."""

Ask = Callable[[Path], Iterator[dict[str, Any]]]


@pytest.fixture
def ask(sidecar: Connection) -> Ask:
    """Ask every tool that runs git or rg about a project."""
    uses = count()

    def asked(root: Path) -> Iterator[dict[str, Any]]:
        session = sidecar.request("session/open", root=str(root))["session_id"]
        for name, arguments in ASKED:
            yield sidecar.request(
                "tools/call",
                session_id=session,
                name=name,
                arguments=arguments,
                tool_use_id=f"use-{next(uses)}",
            )

    return asked


@pytest.fixture(params=["landlock", "by hand"])
def guarded(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[bool]:
    """Return whether the kernel guards git and rg; if not, our own checks must."""
    programs.own_rules.cache_clear()
    by_kernel = request.param == "landlock"
    if not by_kernel:
        monkeypatch.setattr(landlock, "version", lambda: 0)
    elif not landlock.version():
        pytest.skip("this kernel has no Landlock")
    yield by_kernel
    programs.own_rules.cache_clear()


@pytest.fixture
def made(tmp_path: Path) -> Callable[[], Place]:
    """Make another pair of repositories."""
    numbers, first = count(), tmp_path / "first"
    private = Repository(first / "private")
    commit = private.commit(f"{PRIVATE} one", **{"a.txt": f"{PRIVATE} one\n", PRIVATE: PRIVATE})
    private.write("../secret", f"{PRIVATE}={PRIVATE}\n{PRIVATE}\n")
    Repository(first / "project").commit("one", **{"a.txt": "one\n"})

    def place() -> Place:
        folder = tmp_path / str(next(numbers))
        shutil.copytree(first, folder)
        mine, private = Repository(folder / "project"), Repository(folder / "private")
        return Place(mine, private, folder.resolve() / "secret", commit)

    return place


def test_no_repository_leads_out_of_the_project(
    ask: Ask, made: Callable[[], Place], monkeypatch: pytest.MonkeyPatch, *, guarded: bool
) -> None:
    monkeypatch.setattr(file_cache, "SETTLED_NS", ALWAYS_SETTLED_NS)
    for name, way in WAYS.items():
        if name in NEED_LANDLOCK and not guarded:
            continue
        place = made()
        open_repository(place.mine.folder, Cancellation())  # which is remembered
        way(place)
        told = "".join(envelope["text"] for envelope in ask(place.mine.folder))
        assert PRIVATE not in told.replace(str(place.secret.parent), ""), name
        assert "Traceback" not in told, name


def test_the_private_repository_would_be_shown_where_git_is_asked_plainly(
    made: Callable[[], Place],
) -> None:
    place = made()
    WAYS["alternates"](place)
    assert PRIVATE in place.mine.git("log", "main")


@pytest.mark.usefixtures("guarded")
def test_borrowed_objects_are_read_where_the_repository_is_not_the_project_s_own(
    made: Callable[[], Place], tmp_path: Path
) -> None:
    place = made()
    place.lend(_outer(place, "objects"))
    place.mine.git("worktree", "add", "-q", "--detach", str(tmp_path / "linked"), "main")
    found = open_repository(tmp_path / "linked", Cancellation())
    assert PRIVATE in found.run("log", "--format=%s").stdout.decode()
