"""A check that the tests named in `docs/requirements.md` ran and passed.

`python -m tests.docs.requirements_page PYTEST.XML PASSED...` reads the reports of pytest and of
each Emacs about the run that has just ended, and fails if a test did not pass.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree

from tests.docs import pages

PAGE = pages.read("requirements.md")
ROW = re.compile(r"^\| (\d{3} [^|]+?) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
PYTEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
ERT = re.compile(r"`(tests/elisp/[\w-]+-tests\.el)::([\w-]+)`")


def passed_in_pytest(report: Path) -> set[str]:
    """Return the tests that passed in all their cases; skipped ones did not pass."""
    passed: dict[str, bool] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        file = case.get("classname", "").replace(".", "/")
        name = f"{file}.py::{case.get('name', '').partition('[')[0]}"
        held = all(case.find(tag) is None for tag in ("skipped", "failure", "error"))
        passed[name] = passed.get(name, True) and held
    return {name for name, held in passed.items() if held}


def passed_in_emacs(reports: Iterable[Path]) -> set[str]:
    """Return the tests that passed in at least one Emacs; the versions share the tests."""
    return {name for report in reports for name in report.read_text(encoding="utf-8").split()}


def missing(in_pytest: set[str], in_emacs: set[str]) -> list[str]:
    """Return the tests named on the page that are in neither set."""
    named = {f"{file}::{test}": test for file, test in ERT.findall(PAGE)}
    lost = [name for name, test in named.items() if test not in in_emacs]
    wanted = {f"{file}::{test}" for file, test in PYTEST.findall(PAGE)}
    return sorted([*lost, *(wanted - in_pytest)])


def main(pytest_report: Path, *emacs_reports: Path) -> int:
    """Print the tests that are missing and return the exit code."""
    for report in (pytest_report, *emacs_reports):
        if not report.exists():
            print(f"there is no report {report}; the tests run first", file=sys.stderr)
            return 1
    lost = missing(passed_in_pytest(pytest_report), passed_in_emacs(emacs_reports))
    for name in lost:
        print(f"docs/requirements.md: {name} did not run and pass", file=sys.stderr)
    named = len(PYTEST.findall(PAGE)) + len(ERT.findall(PAGE))
    print(f"{named} times a test proves a row; {len(lost)} of these tests did not run and pass")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
