"""Sidecars that are killed while they keep, end or undo a change: every file stays whole."""

from __future__ import annotations

import itertools
import os
import random
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.changes.hands import FAILED, Hands, tree
from tests.changes.test_writing import replace, stamp
from tests.connection import TIMEOUT, RpcError
from tests.processes import until
from tests.sidecar import Sidecar
from tests.soak import stride

SCRATCH = re.compile(r"\.efrit-(undo|write)-")
BEFORE = {"edited": b"one\n", "deleted": b"two\n", "renamed": b"three\n", "both": b"four\n"}
AFTER = {
    "edited": b"ONE\n",
    "made/new/created": b"five\n",
    "made/renamed": b"three\n",
    "moved/both": b"FOUR\n",
}
FILES = [
    {"path": "edited", "kind": "edit"},
    {"path": "deleted", "kind": "delete"},
    {"path": "made/new/created", "kind": "create"},
    {"path": "renamed", "kind": "rename", "to": "made/renamed"},
    {"path": "both", "kind": "rename", "to": "moved/both"},
]


class Surviving:
    """Calls a sidecar that dies, and then another one with the same request, as Emacs does."""

    def __init__(
        self, dying: Sidecar, living: Hands, at_death: Callable[[Path], object] = tree
    ) -> None:
        self._hands = Hands(dying, living.project, living.session)
        self._living = living
        self._at_death = at_death
        self.died = False

    def __call__(self, method: str, /, **params: Any) -> Any:
        """Return the reply of the first sidecar, or of the second if the first died."""
        try:
            return self._hands(method, **params)
        except (AssertionError, BrokenPipeError):
            assert isinstance(self._hands.sidecar, Sidecar)
            assert self._hands.sidecar.process.wait(TIMEOUT) == -9
        self.died = True
        self._at_death(self._hands.project)
        self._hands = self._living
        return self._hands(method, **params)

    def undo(self, number: int) -> None:
        """Undo a change; the sidecar that died may have undone it already."""
        try:
            self("undo", number=number)
        except RpcError as error:
            if not self.died or "undone already" not in error.message:
                raise


def require_whole(project: Path) -> None:
    """Fail unless each file has all of its old or all of its new contents."""
    for name, (_, held) in tree(project).items():
        if isinstance(held, bytes) and not SCRATCH.search(name):
            assert held in (BEFORE.get(name), AFTER.get(name)), name


def start(project: Path) -> None:
    """Write the files as they are before the change."""
    for name, content in BEFORE.items():
        (project / name).write_bytes(content)
    (project / "edited").chmod(0o755)


def change(project: Path) -> None:
    """Change the files as Emacs would."""
    for name in ("made/new", "moved"):
        (project / name).mkdir(parents=True)
    (project / "renamed").rename(project / "made/renamed")
    (project / "both").rename(project / "moved/both")
    (project / "deleted").unlink()
    for name in ("edited", "made/new/created", "moved/both"):
        (project / name).write_bytes(AFTER[name])
    (project / "edited").chmod(0o644)


@pytest.fixture
def armed(tmp_path: Path) -> Path:
    """The file whose existence makes a dying sidecar begin to count."""
    return tmp_path / "armed"


def dying(number: int, what: str, armed: Path) -> Sidecar:
    """Start a sidecar that dies at an operation on files, once it is ready."""
    armed.unlink(missing_ok=True)
    arguments = [str(number), what, str(armed), "serve"]
    made = Sidecar(command=[sys.executable, "-m", "tests.changes.dying", *arguments], cwd=ROOT)
    made.request("session/list")
    return made


ROOT = Path(__file__).parent.parent.parent


@pytest.mark.soak
def test_killed_at_any_look_at_a_file_a_sidecar_has_kept_it_or_can_be_asked_again(
    hands: Hands, armed: Path
) -> None:
    (hands.project / "a").write_text("0")
    for number in itertools.count(1, stride(12)):
        before, use = tree(hands.project), {"tool_use_id": hands.use()}
        with dying(number, "any", armed) as sidecar:
            armed.touch()
            calls = Surviving(sidecar, hands)
            files = [{"path": "a", "kind": "edit"}, {"path": "b/c", "kind": "create"}]
            begun = calls("begin", **use, tool="t", files=files)["changes"]
            assert tree(hands.project) == before
            (hands.project / "a").write_text(str(number))
            ended = calls("end", **use, outcome="done")["changes"]
        assert [one["number"] for one in ended] == [one["number"] for one in begun]
        if not calls.died:
            break
    assert number > 4
    for one in reversed(hands("list")["changes"]):
        hands("undo", number=one["number"])
    assert (hands.project / "a").read_text() == "0"


@pytest.mark.soak
def test_killed_at_any_change_of_an_undo_a_sidecar_leaves_every_file_whole(
    hands: Hands, armed: Path
) -> None:
    start(hands.project)
    before = tree(hands.project)
    for number in itertools.count(1, stride(12)):
        changes = hands.changed(lambda: change(hands.project), *FILES)
        with dying(number, "changing", armed) as sidecar:
            armed.touch()
            calls = Surviving(sidecar, hands, require_whole)
            for one in reversed(changes):
                calls.undo(one)
        assert tree(hands.project) == before
        assert {one["state"] for one in hands("list")["changes"]} == {"undone"}
        if not calls.died:
            break
    assert number > 15


@pytest.mark.soak
def test_killed_at_any_change_of_a_write_a_sidecar_leaves_every_file_whole(
    hands: Hands, armed: Path
) -> None:
    for number in itertools.count(1, stride(12)):
        start(hands.project)
        before = tree(hands.project)
        planned: list[dict[str, Any]] = [
            {**one, "stamp": stamp(hands.project / one["path"])}
            for one in FILES
            if one["path"] != "both"
        ]
        for one in planned:
            if one["kind"] in ("edit", "create"):
                one["replace"] = replace(AFTER[one["path"]], 0, len(BEFORE.get(one["path"], b"")))
        with dying(number, "changing", armed) as sidecar:
            armed.touch()
            calls = Surviving(sidecar, hands, require_whole)
            made = calls("write", tool_use_id=hands.use(), tool="t", files=planned)["changes"]
        assert {one["state"] for one in made} == {"done"}
        assert (hands.project / "edited").read_bytes() == AFTER["edited"]
        assert (hands.project / "made/renamed").read_bytes() == BEFORE["renamed"]
        for one in reversed(made):
            hands("undo", number=one["number"])
        assert tree(hands.project) == before
        if not calls.died:
            break
    assert number > 10


# While much is written


@pytest.fixture
def large(hands: Hands) -> Iterator[tuple[Path, bytes]]:
    """A large file, slow to store and restore, and its contents."""
    file = hands.project / "large"
    content = random.Random(7).randbytes(30_000_000)
    file.write_bytes(content)
    yield file, content
    file.unlink()


def test_killed_while_it_keeps_a_large_file_a_sidecar_keeps_it_whole_or_not_at_all(
    hands: Hands, large: tuple[Path, bytes]
) -> None:
    file, content = large
    wal = next(Path(os.environ["EFRIT_BUDGET_HOME"]).rglob("*-wal"))
    written = wal.stat().st_size
    begin = {"tool_use_id": "one", "tool": "t", "files": [{"path": "large", "kind": "edit"}]}
    with Sidecar() as other:
        other.begin("changes/begin", session_id=hands.session, **begin)
        assert until(lambda: wal.stat().st_size > written + len(content) // 2)
        other.kill()
    begun = hands("begin", **begin)["changes"]
    file.write_bytes(b"small")
    hands("end", tool_use_id="one", outcome="done")
    hands("undo", number=begun[0]["number"])
    assert file.read_bytes() == content
    assert len(hands("list")["changes"]) == 1


def test_killed_while_it_puts_a_large_file_back_a_sidecar_leaves_it_whole(
    hands: Hands, large: tuple[Path, bytes]
) -> None:
    file, content = large

    def is_being_put_back() -> bool:
        return any(SCRATCH.search(entry.name) for entry in hands.project.iterdir())

    number = hands.edit("large", b"small")
    with Sidecar() as other:
        other.begin("changes/undo", session_id=hands.session, number=number)
        assert until(lambda: is_being_put_back() or file.stat().st_size > 5)
        other.kill()
    assert file.read_bytes() in (b"small", content)
    try:
        hands("undo", number=number)
    except RpcError as error:
        if error.code != FAILED or "undone already" not in error.message:
            raise
    assert file.read_bytes() == content
    assert [entry.name for entry in hands.project.iterdir()] == ["large"]
