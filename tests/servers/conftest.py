"""The fixtures of the tests with servers of others."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.servers.litellm import Proxy, litellm

LAST_CHARACTERS = 8_000


@pytest.fixture(scope="session")
def shared_proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """A litellm proxy, which takes too long to start to be started for each test."""
    with litellm(tmp_path_factory.mktemp("litellm")) as running:
        yield running


@pytest.fixture
def proxy(shared_proxy: Proxy) -> Iterator[Proxy]:
    """A litellm proxy before a server that the test has to run; print what it wrote meanwhile."""
    begin = shared_proxy.log.stat().st_size
    yield shared_proxy
    print(shared_proxy.log.read_bytes()[begin:].decode(errors="replace")[-LAST_CHARACTERS:])
