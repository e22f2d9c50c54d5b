"""Resources, the prompt and the instructions over both versions of the protocol."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from mcp.client import Client
from mcp.shared.exceptions import MCPError
from mcp_types import TextContent, TextResourceContents

from efrit_budget.app import Application
from efrit_budget.mcp_server.server import McpServer
from tests.mcp.clients import MODERN, converse, fact, write_lines


async def read(client: Client, uri: str) -> str:
    """Return the text of a resource."""
    (contents,) = (await client.read_resource(uri)).contents
    assert isinstance(contents, TextResourceContents)
    return contents.text


def test_stored_results_and_the_budget_are_resources(
    server: McpServer, protocol: str, project: Path
) -> None:
    write_lines(project, 3_000)

    async def scenario(client: Client) -> None:
        result = await client.call_tool("search_content", {"pattern": "line"})
        assert fact(result, "continuation_token")
        budget, stored = (await client.list_resources()).resources
        assert "line 2999 of a long file" in await read(client, stored.uri)
        used = json.loads(await read(client, budget.uri))["used"]
        assert used >= fact(result, "tokens")

    converse(server, protocol, scenario)


def test_a_client_that_only_looks_opens_no_session(
    server: McpServer, protocol: str, application: Application
) -> None:
    async def scenario(client: Client) -> None:
        await client.list_tools()
        await client.list_prompts()
        assert (await client.list_resources()).resources == []

    converse(server, protocol, scenario)
    assert application.call("session/list", {})["sessions"] == []


@pytest.mark.parametrize("uri", ["efrit://k7m2/results/r5", "efrit://k7m2/nothing", "file:///etc"])
def test_a_resource_that_does_not_exist_is_an_error(
    server: McpServer, protocol: str, uri: str
) -> None:
    async def scenario(client: Client) -> None:
        with pytest.raises(MCPError, match=r"no resource|no result|no entry"):
            await client.read_resource(uri)

    converse(server, protocol, scenario)


def test_the_forms_of_the_addresses_are_listed(server: McpServer, protocol: str) -> None:
    async def scenario(client: Client) -> None:
        templates = (await client.list_resource_templates()).resource_templates
        assert {each.uri_template for each in templates} == {
            "efrit://{session}/results/{handle}",
            "efrit://{session}/budget",
        }

    converse(server, protocol, scenario)


def test_a_prompt_packs_the_memories_of_the_project(server: McpServer, protocol: str) -> None:
    async def scenario(client: Client) -> None:
        saved = {"title": "Retry policy", "content": "Wait twice as long each time."}
        await client.call_tool("mem_save", saved)
        (prompt,) = (await client.list_prompts()).prompts
        given = {"query": "retry", "tokens": "500"}
        (message,) = (await client.get_prompt(prompt.name, given)).messages
        assert isinstance(message.content, TextContent)
        assert "Wait twice as long each time." in message.content.text
        with pytest.raises(MCPError, match="tokens"):
            await client.get_prompt(prompt.name, {"tokens": "many"})
        with pytest.raises(MCPError, match="no prompt 'nosuch'"):
            await client.get_prompt("nosuch")

    converse(server, protocol, scenario)


def test_the_instructions_explain_the_budget(server: McpServer, protocol: str) -> None:
    async def scenario(client: Client) -> None:
        if protocol != MODERN:
            assert client.instructions is not None
            assert client.instructions.startswith("Context budget awareness. ")

    converse(server, protocol, scenario)
