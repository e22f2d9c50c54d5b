"""The processes of the servers behind the gateway: their ends, their starts, their environment."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import anyio
import pytest
from mcp.client import Client

from efrit_budget.app import Application
from efrit_budget.gateway.child import BEHIND
from efrit_budget.gateway.configuration import entry_of
from efrit_budget.mcp_server.server import McpServer
from efrit_budget.project.processes.strays import MARK
from tests.mcp.clients import MODERN, behind, converse, fake_entry, text_of, without_footer


@pytest.fixture
def starts(tmp_path: Path) -> Path:
    """The file to which the server adds a line at each start."""
    return tmp_path / "starts"


@pytest.fixture
def server(application: Application, project: Path, starts: Path) -> McpServer:
    """An MCP server with the fake server behind it."""
    return behind(application, project, fake_entry(starts))


REFUSING = """
import json, sys
for line in sys.stdin:
    reply = {"jsonrpc": "2.0", "id": json.loads(line)["id"]}
    reply["error"] = {"code": -32000, "message": "do as I say"}
    print(json.dumps(reply), flush=True)
"""


def test_words_of_a_server_never_stand_in_a_line_of_ours(
    application: Application, project: Path
) -> None:
    entry = entry_of(f"bad={shlex.join([sys.executable, '-c', REFUSING])}")
    server = behind(application, project, entry)

    async def scenario(client: Client) -> None:
        shown = text_of(await client.call_tool("tool_help"))
        assert "does not run: do as I say" in shown
        assert not [line for line in shown.splitlines() if "say" in line and line[0] == "§"]

    converse(server, MODERN, scenario)


def test_a_server_that_ends_in_a_call_is_told_and_started_again(
    server: McpServer, protocol: str, starts: Path
) -> None:
    async def scenario(client: Client) -> None:
        died = await client.call_tool("fake__die")
        assert died.is_error
        assert "the server fake ended during this call" in text_of(died)
        after = await client.call_tool("fake__count", {"upto": 3})
        assert without_footer(text_of(after)) == "0 1 2"

    converse(server, protocol, scenario)
    assert starts.read_text(encoding="utf-8") == "started\n" * 2


def test_a_call_that_takes_too_long_is_told(
    application: Application, project: Path, starts: Path
) -> None:
    async def scenario(client: Client) -> None:
        result = await client.call_tool("fake__wait", {"seconds": 5})
        assert result.is_error
        assert "did not reply within 0.5 s, the time limit" in text_of(result)

    converse(behind(application, project, fake_entry(starts), seconds=0.5), MODERN, scenario)


def test_a_cancelled_call_is_cancelled_in_the_server(
    server: McpServer, protocol: str, starts: Path
) -> None:
    async def scenario(client: Client) -> None:
        await client.list_tools()
        with anyio.move_on_after(1) as scope:
            await client.call_tool("fake__wait", {"seconds": 600})
        assert scope.cancelled_caught
        result = await client.call_tool("fake__count", {"upto": 3})
        assert not result.is_error
        while "cancelled" not in starts.read_text(encoding="utf-8"):
            await anyio.sleep(0.05)

    converse(server, protocol, scenario)


def test_a_list_that_was_cancelled_is_whole_the_next_time(server: McpServer) -> None:
    async def scenario(client: Client) -> None:
        with anyio.move_on_after(0.01):
            await client.list_tools(cache_mode="bypass")
        names = [tool.name for tool in (await client.list_tools(cache_mode="bypass")).tools]
        assert "fake__count" in names

    converse(server, MODERN, scenario)


def test_a_server_that_cannot_be_started_costs_only_its_own_tools(
    application: Application, project: Path, starts: Path
) -> None:
    server = behind(application, project, entry_of("broken=/nosuch/program"), fake_entry(starts))

    async def scenario(client: Client) -> None:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert "fake__count" in names
        shown = text_of(await client.call_tool("tool_help"))
        assert "broken does not run: " in shown
        assert "/nosuch/program" in shown

    converse(server, MODERN, scenario)


def test_a_server_gets_no_key_of_ours(server: McpServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    monkeypatch.setenv("SOMETHING_ELSE", "of ours")

    async def scenario(client: Client) -> None:
        variables = json.loads(without_footer(text_of(await client.call_tool("fake__environment"))))
        ours = {"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LC_CTYPE", BEHIND, MARK}
        assert variables.keys() <= ours

    converse(server, MODERN, scenario)
