"""Clients for the tests of this folder, closed at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conversation.client import Client

OpenClient = Callable[..., Client]


@pytest.fixture
def open_client(tmp_path: Path) -> Iterator[OpenClient]:
    """A function that opens a session with given limits, in a database of its own."""
    opened: list[Client] = []

    def open_one(**limits: Any) -> Client:
        opened.append(Client(tmp_path / f"client-{len(opened)}", **limits))
        return opened[-1]

    yield open_one
    for client in opened:
        client.close()


@pytest.fixture
def client(open_client: OpenClient) -> Client:
    """A session with the default limits."""
    return open_client()
