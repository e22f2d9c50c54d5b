"""`docs/requirements.md`: every row of the seeds is there, and every test it names runs.

That each of them ran and passed is seen when all have run, by `.ci/steps requirements`.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.docs import pages
from tests.docs.requirements_page import (
    ERT,
    PAGE,
    PYTEST,
    ROW,
    missing,
    passed_in_emacs,
    passed_in_pytest,
)

SUPERSEDED = re.compile(r"\*superseded\*:? \w.{15,}")
NUMBERED = {"000": {"FR": 16, "NFR": 5}, "002": {"FR": 8, "NFR": 4}}
SOURCES = (
    "Effective Context Engineering",
    "Multi-Agent Research System",
    "Writing Effective Tools",
)
HELD_BACK = {"skip", "skipif", "xfail"}


def rows() -> list[tuple[str, str]]:
    """Return the name and the proof of each row."""
    return [(found[1], found[3]) for found in ROW.finditer(PAGE)]


@cache
def defined(file: str) -> frozenset[str]:
    """Return the tests that a file defines and no mark skips."""
    tree = ast.parse((pages.ROOT / file).read_text(encoding="utf-8"))
    marks = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert not HELD_BACK & marks, f"{file} has marks that hold tests back"
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


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
    named = PYTEST.findall(proof)
    assert not [(file, test) for file, test in named if test not in defined(file)]
    in_emacs = ERT.findall(proof)
    for file, test in in_emacs:
        text = (pages.ROOT / file).read_text(encoding="utf-8")
        assert re.search(rf"^\(ert-deftest {re.escape(test)} ", text, re.MULTILINE), test
    assert named or in_emacs or SUPERSEDED.match(proof), name
    assert proof.count("`tests/") == len(named) + len(in_emacs)


REPORT = """<?xml version="1.0" encoding="utf-8"?>
<testsuites><testsuite name="pytest">
<testcase classname="tests.memory.test_store" name="test_whole" time="0.1" />
<testcase classname="tests.memory.test_store" name="test_each[one]" time="0.1" />
<testcase classname="tests.memory.test_store" name="test_each[t]wo]" time="0.1" />
<testcase classname="tests.memory.test_store" name="test_skipped"><skipped /></testcase>
<testcase classname="tests.memory.test_store" name="test_in_part[a]" />
<testcase classname="tests.memory.test_store" name="test_in_part[b]"><failure /></testcase>
</testsuite></testsuites>
"""


def test_only_what_ran_and_passed_in_every_case_counts_as_passed(tmp_path: Path) -> None:
    report = tmp_path / "pytest.xml"
    report.write_text(REPORT, encoding="utf-8")
    assert passed_in_pytest(report) == {
        "tests/memory/test_store.py::test_whole",
        "tests/memory/test_store.py::test_each",
    }


def test_names_of_every_emacs_are_taken_together(tmp_path: Path) -> None:
    files = [tmp_path / "passed-1", tmp_path / "passed-2"]
    for file in files:
        file.write_text(f"efrit-{file.name}\n", encoding="utf-8")
    assert passed_in_emacs(files) == {"efrit-passed-1", "efrit-passed-2"}


def test_every_test_that_the_page_names_is_missed_until_it_has_passed() -> None:
    in_pytest = {f"{file}::{test}" for file, test in PYTEST.findall(PAGE)}
    in_emacs = {test for _, test in ERT.findall(PAGE)}
    assert missing(in_pytest, in_emacs) == []
    one, other = min(in_pytest), min(in_emacs)
    [lost] = missing(in_pytest - {one}, in_emacs)
    assert lost == one
    [lost] = missing(in_pytest, in_emacs - {other})
    assert lost.endswith(f"::{other}")


def test_without_a_report_nothing_is_proven(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.docs.requirements_page"]
    reports = [str(tmp_path / "pytest.xml"), str(tmp_path / "passed-1")]
    done = subprocess.run(
        [*command, *reports], cwd=pages.ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "there is no report" in done.stderr


def test_a_skip_inside_a_lisp_test_is_no_pass(tmp_path: Path) -> None:
    emacs = shutil.which(os.environ.get("EMACS", "emacs"))
    assert emacs
    tests = tmp_path / "tests.el"
    tests.write_text(
        "(require 'ert)\n(ert-deftest one () (should t))\n"
        '(ert-deftest two () (ert-skip "not here"))\n',
        encoding="utf-8",
    )
    report = tmp_path / "passed-1"
    lisp = (
        "(progn (setq noninteractive nil)"
        f' (load "{pages.ROOT}/tests/elisp/run.el" nil t) (setq noninteractive t)'
        " (efrit-run--make-folder)"
        f' (efrit-run--note-passed "{report}" (efrit-run--all (ert-select-tests t t))))'
    )
    subprocess.run(
        [emacs, "-Q", "--batch", "-l", str(tests), "--eval", lisp],
        check=True,
        capture_output=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert passed_in_emacs([report]) == {"one"}


def test_the_page_on_research_names_every_source_of_the_seeds() -> None:
    text = pages.read("research.md")
    for source in SOURCES:
        part = next(part for part in pages.parts(text, 2) if source in part.heading)
        assert len(part.text.split()) > 30, source
        assert "](" in part.text, f"{source}: it names no page of this project"
