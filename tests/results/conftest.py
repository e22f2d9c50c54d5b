"""A client whose process is shared by a module; each test and each example opens a session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conversation.client import Client


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client in a process shared by the module's tests."""
    made = Client(tmp_path_factory.mktemp("client"))
    yield made
    made.close()
