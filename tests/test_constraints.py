"""`constraints.txt` pins everything that the package, its development and benchmarks install."""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
CONSTRAINTS, BENCHMARKS = ROOT / "constraints.txt", ROOT / "requirements-bench.txt"
ADVICE = "the head of constraints.txt tells how to renew it"


def pinned(file: Path = CONSTRAINTS) -> dict[str, str]:
    """Return the pinned version of each distribution."""
    pins = re.findall(r"^([^#\s=]+)==(\S+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
    return {canonicalize_name(name): version for name, version in pins}


def needed(name: str, extras: frozenset[str], found: set[str]) -> set[str]:
    """Add the requirements of a distribution to `found`, direct and indirect, and return it."""
    for line in metadata.requires(name) or []:
        requirement = Requirement(line)
        if applies(requirement, extras) and canonicalize_name(requirement.name) not in found:
            found.add(canonicalize_name(requirement.name))
            needed(requirement.name, frozenset(requirement.extras), found)
    return found


def applies(requirement: Requirement, extras: frozenset[str]) -> bool:
    """Return whether a requirement applies in this environment, with or without the extras."""
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in extras | {""})


def test_everything_that_is_needed_is_pinned() -> None:
    """That is the package, its development tools, the benchmarks, and their requirements."""
    found = needed("efrit-budget", frozenset({"dev"}), set())
    for name in pinned(BENCHMARKS):
        found = needed(name, frozenset(), found | {name})
    assert not found - set(pinned()), ADVICE


def test_the_pinned_versions_are_the_installed_ones() -> None:
    """The tests run with the versions that are installed elsewhere."""
    installed = {name: metadata.version(name) for name in pinned()}
    assert installed == pinned(), ADVICE
