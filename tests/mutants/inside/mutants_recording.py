"""A pytest plugin: announce the test that runs, and write each test's outcome and time."""

from __future__ import annotations

import builtins
import functools
import json
import os
import sys
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path

import pytest

recorder = builtins.mutants_recorder  # type: ignore[attr-defined]
ends: dict[str, list[pytest.TestReport]] = defaultdict(list)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Begin a test with nothing remembered from those before, so that it reaches all it needs."""
    _forget()
    recorder.begin(item.nodeid)
    try:
        return (yield)
    finally:
        recorder.begin("")


def _forget() -> None:
    packages = tuple(os.environ["MUTANT_PACKAGES"].split(","))
    modules = [module for name, module in sys.modules.items() if name.startswith(packages)]
    for module in modules:
        for value in vars(module).values():
            if isinstance(value, functools._lru_cache_wrapper):
                value.cache_clear()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep how each part of a test ended."""
    ends[report.nodeid].append(report)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write what was kept, unless another process gathers it from here."""
    if hasattr(session.config, "workerinput"):
        return
    tests = {
        test: {
            "passed": all(part.outcome == "passed" for part in parts),
            "seconds": round(sum(part.duration for part in parts), 3),
        }
        for test, parts in ends.items()
    }
    Path(os.environ["MUTANT_TESTS"]).write_text(json.dumps(tests), encoding="utf-8")
