"""Tests of globs, compared with rg's reading of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from efrit_budget.cancellation import Cancellation
from efrit_budget.project.search import ripgrep
from efrit_budget.project.search.globs import Glob, GlobError, exactly
from efrit_budget.project.search.walk import Walk

NAMES = [
    *("a.py", "b.el", "src/a.py", "src/b.md", "src/deep/a.py", "src/deep/er/c.py", "x,y", "{a}"),
    *("[a]", "a b ", "a]", "src/[a]/x", "*", "tests/src/a.py", "!bang", "#hash", "a\\b", "ä.py"),
    *("new\nline", "tab\t", "?", ".hidden/a.py"),
]


@pytest.fixture
def walk(tmp_path: Path) -> Walk:
    """A walk through a folder with files of all these names."""
    for name in NAMES:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    rg = ripgrep.find(prefer_system=False)
    return Walk(rg, tmp_path, ".", Cancellation())


@pytest.mark.parametrize(
    "glob",
    [
        *("*.py", "a.*", "src/*.py", "src/**/*.py", "src/**", "**/a.py", "/a.py", "**/deep/**"),
        *("*.{py,md}", "{a,b}.*", "[ab].*", "[!a].md", "[a-b].e?", "?.el", r"\[a\]", "[[]a]"),
        *("x,y", r"\{a\}", "[]a]]*", "a]", "**", "*", "src/[a-z]*/a.py", "ä.*", "s*/a.py"),
    ],
)
def test_a_glob_is_read_as_rg_reads_it(walk: Walk, glob: str) -> None:
    found = walk.names([f"--glob={glob}"])
    assert {name for name in NAMES if Glob(glob).takes(name)} == found


@pytest.mark.parametrize("glob", ["!*.py", "!src", "!src/deep", "!src/**", "!/a.py"])
def test_a_glob_that_excludes_takes_the_rest(walk: Walk, glob: str) -> None:
    assert {name for name in NAMES if Glob(glob).takes(name)} == walk.names([f"--glob={glob}"])


@pytest.mark.parametrize("glob", ["[", "{a", "a}", "a\0", "[]", "", "!", "/", "a[", "[z-a]"])
def test_a_glob_that_cannot_be_read_is_refused(glob: str) -> None:
    with pytest.raises(GlobError):
        Glob(glob).check()


def test_the_exact_glob_of_a_name_leaves_out_that_file_alone(walk: Walk) -> None:
    whole = walk.names()
    for name in NAMES:
        assert whole - walk.names([f"--glob=!{exactly(name)}"]) == {name}
