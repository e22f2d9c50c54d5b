"""The fixtures of the tests with servers of others."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.servers.litellm import Proxy, litellm


@pytest.fixture(scope="session")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """A litellm proxy before a server that the test has to run."""
    with litellm(tmp_path_factory.mktemp("litellm")) as running:
        yield running
