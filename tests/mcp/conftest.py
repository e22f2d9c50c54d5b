"""The fixtures of the MCP tests: the application, and the versions of the protocol."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

from efrit_budget.app import Application, open_application
from efrit_budget.mcp_server.server import McpServer, Options
from efrit_budget.settings.load import load
from efrit_budget.tools import registry
from tests.databases import copy_template
from tests.local_sidecar import _load_tool
from tests.mcp.clients import LEGACY, MODERN


@pytest.fixture
def application(tools_for_tests: Path) -> Iterator[Application]:
    """The sidecar's application with the tools for tests."""
    loaded = load()
    copy_template(loaded.settings.storage.database)
    with patch.object(registry, "_load", _load_tool):
        opened = open_application(loaded)
    yield opened
    opened.close()


@pytest.fixture(params=[LEGACY, MODERN])
def protocol(request: pytest.FixtureRequest) -> str:
    """The version of the protocol that the client speaks."""
    version: str = request.param
    return version


@pytest.fixture
def server(application: Application, project: Path) -> McpServer:
    """An MCP server on an empty project."""
    (project / "notes.md").write_text("# Notes\n", encoding="utf-8")
    return McpServer(application, project, Options())
