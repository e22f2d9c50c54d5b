"""Clients of the MCP SDK that are connected to a server in the same process."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Literal

import anyio
from mcp.client import Client
from mcp.client._memory import InMemoryTransport
from mcp_types import CallToolResult, ElicitRequestParams, ElicitResult, TextContent

from efrit_budget.app import Application
from efrit_budget.gateway.configuration import ServerEntry, entry_of
from efrit_budget.gateway.gateway import Gateway
from efrit_budget.gateway.offers import Choice
from efrit_budget.mcp_server.server import McpServer, Options
from tests.mcp import fake_server

LEGACY, MODERN = "legacy", "2026-07-28"
TIMEOUT = 120
FAKE, SESSION = Path(fake_server.__file__), "k7m2"
CALL_SECONDS = 60.0
FOOTER = re.compile(r"\n📏 ~[\d,]+ tokens( · [\d.k]+ left)?$")

Action = Literal["accept", "decline", "cancel"]
Scenario = Callable[[Client], Awaitable[None]]


def converse(server: McpServer, protocol: str, scenario: Scenario, **options: Any) -> None:
    """Run a scenario with a client that speaks this version of the protocol."""

    async def run() -> None:
        transport = InMemoryTransport(server.protocol_server())
        with anyio.fail_after(TIMEOUT):
            async with Client(transport, mode=protocol, **options) as client:
                await scenario(client)

    anyio.run(run)


def fake_entry(*arguments: object) -> ServerEntry:
    """Return how the fake server is started."""
    command = shlex.join([sys.executable, str(FAKE), *map(str, arguments)])
    return entry_of(f"fake={command}")


def behind(
    application: Application,
    project: Path,
    *entries: ServerEntry,
    choice: Choice | None = None,
    seconds: float = CALL_SECONDS,
) -> McpServer:
    """Return an MCP server with others behind it."""
    gateway = Gateway(entries, choice or Choice(), seconds)
    return McpServer(application, project, Options(SESSION, project_tools=False), gateway)


def text_of(result: CallToolResult) -> str:
    """Return the text of a result, whose blocks are all texts."""
    blocks = [block for block in result.content if isinstance(block, TextContent)]
    assert len(blocks) == len(result.content)
    return "\n".join(block.text for block in blocks)


def delivered(result: CallToolResult) -> str:
    """Return the text that was delivered, without a note before it and without its footer."""
    block = result.content[-1]
    assert isinstance(block, TextContent)
    return without_footer(block.text)


def without_footer(text: str) -> str:
    """Return a delivered text without its footer, which it must have."""
    found = FOOTER.search(text)
    assert found, text
    return text[: found.start()]


def fact(result: CallToolResult, name: str) -> Any:
    """Return a fact on a result, or None if it has none of this name."""
    return (result.meta or {}).get(f"efrit-budget/{name}")


class Person:
    """A person who gives each question the same answer."""

    def __init__(self, action: Action) -> None:
        self.action = action
        self.questions: list[str] = []

    async def answer(self, _context: Any, params: ElicitRequestParams) -> ElicitResult:
        """Note a question and return the answer."""
        self.questions.append(params.message)
        return ElicitResult(action=self.action)


def write_lines(project: Path, count: int) -> str:
    """Write a file of numbered lines and return its text."""
    text = "".join(f"line {number} of a long file\n" for number in range(count))
    (project / "long.txt").write_text(text, encoding="utf-8")
    return text
