"""Endpoints: one that plays a test's scenario, and one that the tests of a module share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.demo.running import Endpoint, endpoint

Play = Callable[..., Endpoint]
"""Runs an endpoint that plays a scenario, with options of the endpoint as keywords."""


@pytest.fixture
def play(tmp_path: Path) -> Iterator[Play]:
    """Run an endpoint that plays the scenario it is given."""
    with ExitStack() as stack:
        yield lambda scenario, **options: stack.enter_context(
            endpoint(scenario, tmp_path, **options)
        )


@pytest.fixture(scope="module")
def talker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    """An endpoint that always has a reply, shared by the tests of a module."""
    with endpoint("", tmp_path_factory.mktemp("talker")) as running:
        yield running
