"""Endpoints: one that plays what a test gives it, and one that a module's tests share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.demo.running import Endpoint, endpoint

Play = Callable[[str], Endpoint]


@pytest.fixture
def play(tmp_path: Path) -> Iterator[Play]:
    """Run an endpoint that plays the scenario it is given."""
    with ExitStack() as stack:
        yield lambda scenario: stack.enter_context(endpoint(scenario, tmp_path))


@pytest.fixture(scope="module")
def talker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    """An endpoint that always has something to say, for a module's tests together."""
    with endpoint("", tmp_path_factory.mktemp("talker")) as running:
        yield running
