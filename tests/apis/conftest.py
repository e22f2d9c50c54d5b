"""Sessions at endpoints of the API `chat`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conversation.client import Client

ChatClient = Callable[..., Client]
CHAT_MODEL = "someones-model"


@pytest.fixture
def chat_client(tmp_path: Path) -> Iterator[ChatClient]:
    """A function that opens a session at a chat endpoint with these features."""
    opened: list[Client] = []

    def open_one(*features: str, window: int = 200_000, **limits: Any) -> Client:
        client = Client(tmp_path / f"client-{len(opened)}", **limits)
        client.model = CHAT_MODEL
        client.request = {
            "endpoint": {
                "provider": "somewhere",
                "api": "chat",
                "window": window,
                "features": list(features),
            }
        }
        opened.append(client)
        return client

    yield open_one
    for client in opened:
        client.close()
