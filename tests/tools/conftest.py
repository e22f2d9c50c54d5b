"""Fixtures for tests of tools: functions that call a tool, and a repository to call it on."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.connection import Connection
from tests.marks import unmarked
from tests.repository import Repository

Call = Callable[..., dict[str, Any]]


@pytest.fixture
def call(sidecar: Connection, session: str) -> Call:
    """Call a tool by its name with its arguments; `confirm_id` goes beside them."""
    uses = count()

    def called(
        name: str, use: str | None = None, confirm_id: str | None = None, **arguments: Any
    ) -> dict[str, Any]:
        beside = {} if confirm_id is None else {"confirm_id": confirm_id}
        return sidecar.call_tool(session, name, use or f"use-{next(uses)}", arguments, **beside)

    return called


@pytest.fixture
def repository(project: Path) -> Repository:
    """A repository without commits, at the top of the project."""
    return Repository(project)


def shown(envelope: dict[str, Any]) -> str:
    """Return the text without its footer and the marks of its own lines."""
    text: str = envelope["text"]
    return unmarked(text[: text.rindex("📏")]).rstrip("\n")


@pytest.fixture
def shrunk(sidecar: Connection, session: str) -> Callable[[dict[str, Any]], str]:
    """A function that returns the line that replaces a result, without its handle."""

    def line(envelope: dict[str, Any]) -> str:
        entries = sidecar.request("worklog/list", session_id=session, limit=1000)["entries"]
        entry = next(entry for entry in entries if entry["handle"] == envelope["handle"])
        kept: str = entry["compressed"]
        return kept.partition("brings it back] ")[2]

    return line
