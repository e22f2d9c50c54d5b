"""Any sequence of changes, undone in reverse, restores everything."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from tests.changes.hands import Hands, tree
from tests.connection import RpcError
from tests.sidecar import Sidecar
from tests.soak import amount

FILE_NAMES = (
    *("a", "b.txt", "one/a", "one/two/c", "größe/日本", "new\nline/x y", "caf\udce9", ".hidden/-x"),
    *("one/two/d/e", "deep/er/f"),
)
NAMES = st.sampled_from(FILE_NAMES)
CONTENTS = st.one_of(
    st.sampled_from([b"", b"\n", b"a\r\nb\r\n", b"no end", b"\0\xff", b"\xef\xbb\xbfBOM\n"]),
    st.binary(max_size=200),
)
MODES = st.sampled_from([0o644, 0o600, 0o755, 0o444])
FILES = st.dictionaries(NAMES, st.tuples(CONTENTS, MODES), min_size=2)
FOLDERS = st.lists(st.sampled_from(["empty", "one", "one/empty", "größe", "deep/er/still"]))
STEPS = st.lists(
    st.tuples(
        st.sampled_from([*("edit", "create", "delete", "rename") * 3, "restart"]),
        st.integers(0, 9),
        NAMES,
        CONTENTS,
        st.one_of(st.none(), MODES),
    ),
    min_size=2,
    max_size=15,
)
Step = tuple[str, int, str, bytes, int | None]


def quoted(name: str) -> str:
    """Return a name of a file in the form that tools take literally."""
    escaped = name.replace("\n", "\\n").replace("\udce9", "\\351")
    return name if escaped == name else f'"{escaped}"'


class Person:
    """Changes files in a folder through a sidecar; the folder is made anew for each example."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sidecar = Sidecar()
        self.hands = Hands(self.sidecar, folder, "")

    def start(self, files: dict[str, tuple[bytes, int]], folders: list[str], *, git: bool) -> None:
        """Make a folder with these files and folders, and open a session on it."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        if git:
            subprocess.run(["git", "init", "-q", str(self.folder)], check=True)
        for folder in folders:
            with suppress(FileExistsError):
                (self.folder / folder).mkdir(parents=True, exist_ok=True)
        for name, (content, mode) in files.items():
            file = self.folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
            file.chmod(mode)
        opened = self.sidecar.request("session/open", root=str(self.folder))
        self.hands = Hands(self.sidecar, self.folder, opened["session_id"])

    def restart(self) -> None:
        """Continue with another sidecar after the death of this one."""
        self.sidecar.kill()
        self.close()
        self.sidecar = Sidecar()
        self.hands = Hands(self.sidecar, self.folder, self.hands.session)

    def close(self) -> None:
        """End the sidecar's process."""
        self.sidecar.__exit__(None)

    def step(self, kind: str, pick: int, name: str, content: bytes, mode: int | None) -> None:
        """Make one change, of an existing file or one with this name, as far as it is possible."""
        there = [file for file in FILE_NAMES if (self.folder / file).is_file()]
        old = there[pick % len(there)] if there else name
        if kind == "restart":
            self.restart()
        elif kind == "rename":
            renamed = {"path": quoted(old), "kind": kind, "to": quoted(name)}
            self._try(lambda: _rename(self.folder / old, self.folder / name), renamed)
        elif kind == "delete":
            self._try((self.folder / old).unlink, {"path": quoted(old), "kind": kind})
        else:
            path = old if kind == "edit" else name
            write = _writing(self.folder / path, content, mode)
            self._try(write, {"path": quoted(path), "kind": kind})

    def _try(self, change: Callable[[], object], file: dict[str, str]) -> None:
        try:
            self.hands.changed(change, file)
        except RpcError as error:
            note(f"{file}: {error.told}")


def _rename(file: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    file.rename(target)


def _writing(file: Path, content: bytes, mode: int | None) -> Callable[[], object]:
    def write() -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        if mode is not None:
            file.chmod(mode)

    return write


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The parent folder of the project."""
    return tmp_path_factory.mktemp("sequences") / "project"


@pytest.fixture
def person(folder: Path) -> Iterator[Person]:
    """A person with a sidecar."""
    made = Person(folder)
    yield made
    made.close()


@settings(max_examples=amount(10, 300))
@given(files=FILES, folders=FOLDERS, steps=STEPS, git=st.booleans())
def test_whatever_was_changed_undoing_it_in_reverse_leaves_everything_as_it_was(
    person: Person,
    files: dict[str, tuple[bytes, int]],
    folders: list[str],
    steps: list[Step],
    git: bool,
) -> None:
    person.start(files, folders, git=git)
    stages = [tree(person.folder)]
    person.hands("checkpoint")
    for step in steps:
        person.step(*step)
        stages.append(tree(person.folder))
    changes = person.hands("list")["changes"]
    assert {one["now"] for one in changes if one["state"] == "done"} <= {"as_left", "undone"}
    for number in person.hands("since", checkpoint="k1")["numbers"]:
        person.hands("undo", number=number)
        assert tree(person.folder) in stages
    assert tree(person.folder) == stages[0]
