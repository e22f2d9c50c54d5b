"""`docs/requirements.md`: every row of the seeds is there, and every test it names runs."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache

import pytest

from tests.docs import pages

PAGE = pages.read("requirements.md")
ROW = re.compile(r"^\| (\d{3} [^|]+?) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
PYTEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
ERT = re.compile(r"`(tests/elisp/[\w-]+-tests\.el)::([\w-]+)`")
SUPERSEDED = re.compile(r"\*superseded\*:? \w.{15,}")
NUMBERED = {"000": {"FR": 16, "NFR": 5}, "002": {"FR": 8, "NFR": 4}}
SOURCES = (
    "Effective Context Engineering",
    "Multi-Agent Research System",
    "Writing Effective Tools",
)
COLLECT = """
import sys, pytest
class Names:
    def pytest_collection_finish(self, session):
        for item in session.items:
            if not any(item.get_closest_marker(name) for name in ("skip", "skipif", "xfail")):
                print(f"RUNS {item.nodeid.partition('[')[0]}")
sys.exit(pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider", *sys.argv[1:]], [Names()]))
"""


def rows() -> list[tuple[str, str]]:
    """Each row's name and what stands for its proof."""
    return [(found[1], found[3]) for found in ROW.finditer(PAGE)]


@cache
def running() -> frozenset[str]:
    """Of the files that are named, the tests that pytest collects and no mark holds back."""
    files = sorted({file for file, _ in PYTEST.findall(PAGE)})
    command = [sys.executable, "-c", COLLECT, *files]
    done = subprocess.run(command, cwd=pages.ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    lines = done.stdout.splitlines()
    return frozenset(line.removeprefix("RUNS ") for line in lines if line.startswith("RUNS "))


def test_every_number_of_the_seeds_has_its_row_once() -> None:
    names = [name for name, _ in rows()]
    assert len(set(names)) == len(names)
    wanted = {
        f"{seed} {kind}-{number:03}"
        for seed, kinds in NUMBERED.items()
        for kind, last in kinds.items()
        for number in range(1, last + 1)
    }
    assert wanted <= set(names)
    assert {name[:3] for name in names} == {"000", "001", "002", "003", "004"}
    assert len(names) == PAGE.count("\n| 0")


@pytest.mark.parametrize(("name", "proof"), rows(), ids=[name for name, _ in rows()])
def test_a_row_names_a_test_that_runs_or_says_why_it_is_superseded(name: str, proof: str) -> None:
    named = [f"{file}::{test}" for file, test in PYTEST.findall(proof)]
    assert not set(named) - running()
    in_emacs = ERT.findall(proof)
    for file, test in in_emacs:
        text = (pages.ROOT / file).read_text(encoding="utf-8")
        assert re.search(rf"^\(ert-deftest {re.escape(test)} ", text, re.MULTILINE), test
    assert named or in_emacs or SUPERSEDED.match(proof), name
    assert proof.count("`tests/") == len(named) + len(in_emacs)


def test_the_page_on_research_names_every_source_of_the_seeds() -> None:
    text = pages.read("research.md")
    for source in SOURCES:
        part = next(part for part in pages.parts(text, 2) if source in part.heading)
        assert len(part.text.split()) > 30, source
        assert "](" in part.text, f"{source}: it names no page of this project"
