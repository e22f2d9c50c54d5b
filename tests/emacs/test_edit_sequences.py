"""All edits, by the model's tools and by hand, can be undone."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.emacs.batch import batch
from tests.soak import amount

RESULT = "RESULT "

Tree = dict[str, str]
Step = list[Any]


class Driver:
    """A batch Emacs that makes sequences of edits."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, root: Path, steps: list[Step]) -> dict[str, Any]:
        """Run the steps in the project at `root` and return the outcome."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"root": str(root), "steps": steps}) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith(RESULT):
                result: dict[str, Any] = json.loads(line.removeprefix(RESULT))
                return result
        raise AssertionError("Emacs ended")


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """One Emacs and one sidecar for all sequences."""
    home = tmp_path_factory.mktemp("home")
    with batch("edit-driver.el", home, stdin=subprocess.PIPE) as process:
        yield Driver(process)
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(timeout=300) == 0


letters = st.characters(codec="utf-8", exclude_characters="\0")
words = st.sampled_from(
    ["one", "two\n", "größe ", "“x”", "😀", "\r\n", "  ", "\t", "a", "\n", "日本"]
)
texts = st.one_of(st.lists(words, max_size=12).map("".join), st.text(alphabet=letters, max_size=20))
contents = st.one_of(
    texts.map(str.encode),
    texts.map(lambda text: text.replace("\r\n", "\n").replace("\n", "\r\n").encode()),
    texts.map(lambda text: b"\xef\xbb\xbf" + text.encode()),
    st.binary(max_size=30),
)
names = st.sampled_from(["a.txt", "b.el", "ü b.py", "new/c.md", "new/deep/d", "-e.c"])
numbers = st.integers(min_value=0, max_value=40)
sizes = st.integers(min_value=1, max_value=8)
steps = st.one_of(
    st.tuples(st.just("edit"), numbers, numbers, sizes, texts, st.booleans()),
    st.tuples(
        st.just("multi"),
        st.lists(st.tuples(numbers, numbers, sizes, texts), min_size=1, max_size=3),
    ),
    st.tuples(st.just("create"), names, texts),
    st.tuples(st.just("rename"), numbers, names),
    st.tuples(st.just("delete"), numbers),
    st.tuples(st.just("undo")),
    st.tuples(st.just("hand"), numbers, numbers, texts, st.booleans()),
    st.tuples(st.just("disk"), numbers, texts),
)
BY_HAND = ("hand", "disk")


@contextmanager
def project(files: dict[str, bytes]) -> Iterator[Path]:
    """Yield a project with these files."""
    root = Path(tempfile.mkdtemp(prefix="efrit-edits-")).resolve()
    try:
        for name, data in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(data)
        yield root
    finally:
        shutil.rmtree(root)


def tree_of(root: Path) -> Tree:
    """Return a hash of each file in the project."""
    return {
        str(path.relative_to(root)): hashlib.md5(path.read_bytes()).hexdigest()
        for path in root.rglob("*")
        if path.is_file()
    }


def paths_of(change: dict[str, Any]) -> list[str]:
    """Return the paths that a change concerns."""
    return [path for path in (change["path"], change["to"]) if path is not None]


def step_of(result: dict[str, Any], number: int) -> dict[str, Any]:
    """Return the step that made a change."""
    made: dict[str, Any] = [step for step in result["steps"] if step["before"] < number][-1]
    return made


def in_force(result: dict[str, Any]) -> Iterator[tuple[dict[str, Any], Tree]]:
    """Yield each change in force, the latest first, and the tree before it."""
    for change in reversed(result["changes"]):
        if change["state"] == "done":
            yield change, step_of(result, change["number"])["tree"]


def with_(tree: Tree, others: Tree, paths: list[str]) -> Tree:
    """Return a tree in which these paths are as in another tree."""
    kept = {path: digest for path, digest in tree.items() if path not in paths}
    return kept | {path: others[path] for path in paths if path in others}


@settings(max_examples=amount(8, 500), phases=[Phase.generate], database=None)
@given(
    files=st.dictionaries(names, contents, min_size=1, max_size=4),
    asked=st.lists(steps, max_size=8),
)
def test_all_edits_can_be_taken_back_and_nothing_of_the_persons_is_lost(
    driver: Driver, files: dict[str, bytes], asked: list[Step]
) -> None:
    """Undo restores each file, or leaves it alone if it was edited by hand since."""
    with project(files) as root:
        first = tree_of(root)
        result = driver.run(root, asked)
        assert "error" not in result, result
        expected = result["end"]
        for change, before in in_force(result):
            expected = with_(expected, before, paths_of(change))
        for undone in result["undone"]:
            if undone["problem"]:
                assert undone["after"] == undone["tree"]
        if not any(step[0] in BY_HAND for step in asked):
            assert not any(undone["problem"] for undone in result["undone"]), result["undone"]
            assert tree_of(root) == first
        assert not any(undone["problem"] for undone in result["forced"]), result["forced"]
        assert tree_of(root) == expected
        assert result["history"] == []
