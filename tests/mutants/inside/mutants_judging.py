"""A pytest plugin: run some tests in a given order, each within its limit; report failures.

`MUTANT_TESTS` is a file of JSON: the tests, each with its limit in seconds. Each that fails or
takes too long gets a line of JSON in the file `MUTANT_KILLERS`.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Generator
from pathlib import Path

import pytest

limits: dict[str, float] = json.loads(Path(os.environ["MUTANT_TESTS"]).read_bytes())
killers = Path(os.environ["MUTANT_KILLERS"])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests that are asked for, in the order in which they are."""
    found = {item.nodeid: item for item in items}
    items[:] = [found[test] for test in limits if test in found]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """End the process where a test takes too long."""
    timer = threading.Timer(limits[item.nodeid], _give_up, [item.nodeid])
    timer.daemon = True
    timer.start()
    try:
        return (yield)
    finally:
        timer.cancel()


def _give_up(test: str) -> None:
    _name(test, timed_out=True)
    os._exit(1)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Write a failing test to the file of killers."""
    if report.failed:
        _name(report.nodeid, timed_out=False)


def _name(test: str, *, timed_out: bool) -> None:
    with killers.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"test": test, "timed_out": timed_out}) + "\n")
