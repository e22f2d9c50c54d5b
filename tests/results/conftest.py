"""A client whose process lasts for a whole module; each test and each example opens a session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.window.client import Client


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """The client."""
    made = Client(tmp_path_factory.mktemp("client"))
    yield made
    made.close()
