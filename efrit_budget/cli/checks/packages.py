"""Check Python and the packages that the sidecar imports."""

import operator
import re
import sys
from collections.abc import Iterator
from importlib import metadata
from typing import Final

from efrit_budget.cli.checks.check import Check, listed_programs

_DISTRIBUTION: Final = "efrit-budget"
_HOLDS: Final = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
}


def check_python() -> Check:
    """Check the running Python's version."""
    found = f"{sys.version.split()[0]} ({sys.executable})"
    oldest = listed_programs()["Python"].oldest
    new_enough = sys.version_info[:2] >= _numbers(oldest)
    return Check("Python", found, None if new_enough else f"run it with Python {oldest} or newer")


def check_packages() -> Iterator[Check]:
    """Check each package that our own metadata requires."""
    try:
        requirements = metadata.requires(_DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        yield Check(
            "packages", "efrit-budget is not installed", "run: pip install . in its checkout"
        )
        return
    for requirement in requirements:
        if ";" not in requirement:
            yield _check_package(requirement)


def _check_package(requirement: str) -> Check:
    name, clauses = _name_and_clauses(requirement)
    fix = f"run: {sys.executable} -m pip install '{requirement}'"
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return Check(f"package {name}", "not installed", fix)
    if all(_HOLDS[sign](_numbers(version), _numbers(bound)) for sign, bound in clauses):
        return Check(f"package {name}", version)
    return Check(f"package {name}", f"{version} is unfit", fix)


def _name_and_clauses(requirement: str) -> tuple[str, list[tuple[str, str]]]:
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    name = match[0] if match else requirement
    return name, re.findall(r"(>=|<=|==|<|>)\s*([0-9][0-9.]*)", requirement[len(name) :])


def _numbers(version: str) -> tuple[int, ...]:
    match = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(part) for part in match[0].split(".")) if match else ()
