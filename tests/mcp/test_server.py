"""Tools, resources and prompts over both versions of the protocol."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client import Client
from mcp.shared.exceptions import MCPError
from mcp_types import ImageContent, TextContent
from PIL import Image

from efrit_budget.app import Application
from efrit_budget.errors import EfritError
from efrit_budget.mcp_server.server import McpServer, Options
from tests.mcp.clients import (
    MODERN,
    Person,
    converse,
    fact,
    text_of,
    without_footer,
    write_lines,
)

# Tools


def test_every_tool_of_the_sidecar_is_listed_with_its_schema(
    server: McpServer, protocol: str, application: Application
) -> None:
    async def scenario(client: Client) -> None:
        listed = (await client.list_tools()).tools
        entries = application.call("tools/list", {})["tools"]
        assert [tool.name for tool in listed] == [entry["name"] for entry in entries]
        for tool, entry in zip(listed, entries, strict=True):
            properties = dict(tool.input_schema["properties"])
            assert properties.pop("session") == {"type": "string"}
            assert properties == entry["input_schema"]["properties"]

    converse(server, protocol, scenario)


def test_every_tool_can_be_called(server: McpServer, protocol: str) -> None:
    """Without the arguments that some need, the reply says which are missing."""

    async def scenario(client: Client) -> None:
        for tool in (await client.list_tools()).tools:
            result = await client.call_tool(tool.name)
            assert "📏" in text_of(result)
            if tool.input_schema.get("required"):
                assert result.is_error
                assert "Field required" in text_of(result)

    converse(server, protocol, scenario)


def test_the_annotations_say_which_tools_change_something(server: McpServer, protocol: str) -> None:
    async def scenario(client: Client) -> None:
        hints = {tool.name: tool.annotations for tool in (await client.list_tools()).tools}
        read, saved, ran = (hints[name] for name in ("read_file", "mem_save", "run_command"))
        assert read is not None
        assert saved is not None
        assert ran is not None
        assert (read.read_only_hint, read.destructive_hint) == (True, None)
        assert (saved.read_only_hint, saved.destructive_hint) == (False, False)
        assert (ran.read_only_hint, ran.destructive_hint) == (False, True)

    converse(server, protocol, scenario)


def test_the_list_of_tools_stays_the_same(server: McpServer, protocol: str) -> None:
    async def scenario(client: Client) -> None:
        first = await client.list_tools(cache_mode="bypass")
        await client.call_tool("file_info", {"paths": ["notes.md"]})
        assert await client.list_tools(cache_mode="bypass") == first

    converse(server, protocol, scenario)


def test_a_call_gives_the_same_text_as_by_json_rpc(
    server: McpServer, protocol: str, application: Application, project: Path
) -> None:
    arguments = {"paths": ["notes.md"]}
    opened = application.call("session/open", {"root": str(project)})
    call = {"name": "file_info", "arguments": arguments, "tool_use_id": "toolu_1"}
    envelope = application.call("tools/call", {"session_id": opened["session_id"], **call})

    async def scenario(client: Client) -> None:
        result = await client.call_tool("file_info", arguments)
        assert not result.is_error
        assert text_of(result) == envelope["text"]
        assert fact(result, "handle") == "r1"
        assert fact(result, "tokens") == envelope["tokens"]
        assert result.structured_content is None

    converse(server, protocol, scenario)


def test_the_facts_can_be_structured_content_too(
    application: Application, project: Path, protocol: str
) -> None:
    server = McpServer(application, project, Options("k7m2", structured=True))

    async def scenario(client: Client) -> None:
        result = await client.call_tool("mem_stats")
        facts = result.structured_content
        assert (facts["session"], facts["status"], facts["handle"]) == ("k7m2", "success", "r1")

    converse(server, protocol, scenario)


def test_the_pages_of_a_result_are_together_the_whole(
    server: McpServer, protocol: str, project: Path
) -> None:
    write_lines(project, 400)

    async def scenario(client: Client) -> None:
        found = {"pattern": "line", "max_tokens": 800}
        result = await client.call_tool("search_content", found)
        pages = []
        while True:
            assert fact(result, "tokens") <= 800
            pages += [line for line in text_of(result).splitlines() if "of a long file" in line]
            token = fact(result, "continuation_token")
            if token is None:
                break
            arguments = {"continuation_token": token, "max_tokens": 800}
            result = await client.call_tool("recall_result", arguments)
        assert len(pages) == 400
        assert len(set(pages)) == 400

    converse(server, protocol, scenario)


def test_a_repeated_result_is_told_by_a_line_and_recalled_in_full(
    server: McpServer, protocol: str, project: Path
) -> None:
    write_lines(project, 100)

    async def scenario(client: Client) -> None:
        arguments = {"pattern": "line"}
        first = await client.call_tool("search_content", arguments)
        again = await client.call_tool("search_content", arguments)
        recalled = await client.call_tool("recall_result", {"handle": "r1"})
        assert text_of(again).startswith("§ Same as r1, which is in the window in full.")
        found = without_footer(text_of(first)).removesuffix("\n§ 100 matching lines in 1 file.")
        assert without_footer(text_of(recalled)) == found.removesuffix("\n")

    converse(server, protocol, scenario)


def test_an_image_comes_as_an_image(server: McpServer, protocol: str, project: Path) -> None:
    Image.new("RGB", (40, 30), "red").save(project / "red.png")

    async def scenario(client: Client) -> None:
        result = await client.call_tool("read_image", {"path": "red.png"})
        image, text = result.content
        assert isinstance(image, ImageContent)
        assert image.mime_type == "image/png"
        assert isinstance(text, TextContent)
        assert "📏" in text.text

    converse(server, protocol, scenario)


# Sessions


def test_calls_with_another_session_have_another_work_log(server: McpServer, protocol: str) -> None:
    async def scenario(client: Client) -> None:
        first = await client.call_tool("mem_stats")
        apart = await client.call_tool("mem_stats", {"session": "apart"})
        second = await client.call_tool("mem_stats", {"session": fact(first, "session")})
        assert [fact(each, "handle") for each in (first, apart, second)] == ["r1", "r1", "r2"]
        assert fact(apart, "session") == "apart"

    converse(server, protocol, scenario)


def test_a_session_of_another_project_is_refused(
    server: McpServer, protocol: str, application: Application, tmp_path: Path
) -> None:
    application.call("session/open", {"root": str(tmp_path), "session_id": "theirs"})

    async def scenario(client: Client) -> None:
        result = await client.call_tool("mem_stats", {"session": "theirs"})
        assert result.is_error
        assert "session 'theirs' belongs to" in text_of(result)

    converse(server, protocol, scenario)


@pytest.mark.parametrize("method", ["session/delete", "session/close"])
def test_a_session_that_somebody_ended_is_opened_anew_by_the_next_call(
    application: Application, project: Path, method: str
) -> None:
    async def scenario(client: Client) -> None:
        await client.call_tool("mem_stats")
        application.call(method, {"session_id": "k7m2"})
        ended = await client.call_tool("mem_stats")
        assert ended.is_error
        assert "call again, and it is opened anew" in text_of(ended)
        assert not (await client.call_tool("mem_stats")).is_error

    converse(McpServer(application, project, Options("k7m2")), MODERN, scenario)


def test_a_named_session_goes_on_where_it_was(application: Application, project: Path) -> None:
    async def scenario(client: Client) -> None:
        result = await client.call_tool("recall_result", {"handle": "r1"})
        assert "observations" in text_of(result)

    opened = application.call("session/open", {"root": str(project), "session_id": "k7m2"})
    call = {"name": "mem_stats", "tool_use_id": "toolu_1", "session_id": opened["session_id"]}
    application.call("tools/call", call)
    converse(McpServer(application, project, Options("k7m2")), MODERN, scenario)


def test_a_name_that_no_session_can_have_is_refused_at_once(
    application: Application, project: Path
) -> None:
    with pytest.raises(EfritError, match="session_id"):
        McpServer(application, project, Options("Not A Name"))


def test_a_session_whose_budget_is_used_up_begins_again(
    application: Application, project: Path, protocol: str
) -> None:
    """In a hundred calls no allowance is passed, and what came first can be recalled."""
    limits = {"total": 20_000}
    opened = {"root": str(project), "session_id": "k7m2", "limits": limits}
    application.call("session/open", opened)
    texts = {f"{number}.txt": f"file {number}: " + "word " * 400 for number in range(50)}
    for name, text in texts.items():
        (project / name).write_text(text, encoding="utf-8")

    async def scenario(client: Client) -> None:
        compactions = 0
        for number in range(100):
            name = f"{number % 50}.txt"
            result = await client.call_tool("read_file", {"path": name})
            compactions += "The budget was used up" in text_of(result)
            assert not result.is_error
            assert fact(result, "tokens") <= 8_000
        first = await client.call_tool("recall_result", {"handle": "r1"})
        assert compactions > 2
        assert texts["0.txt"] in text_of(first)

    converse(McpServer(application, project, Options("k7m2")), protocol, scenario)


# Bad calls


@pytest.mark.parametrize(
    ("name", "arguments", "problem"),
    [
        ("file_info", {"paths": 7}, "file_info: paths"),
        ("file_info", {"nosuch": 1}, "nosuch"),
        ("read_file", {"path": "../../etc/passwd"}, "outside"),
        ("recall_result", {"handle": "r99"}, "r99"),
        ("recall_result", {"continuation_token": "r1:5-abcd"}, "continuation token"),
        ("mem_stats", {"session": 7}, "session"),
        ("mem_stats", {"session": "NO"}, "session_id"),
    ],
)
def test_a_bad_call_says_what_is_wrong(
    server: McpServer, protocol: str, name: str, arguments: dict[str, Any], problem: str
) -> None:
    async def scenario(client: Client) -> None:
        result = await client.call_tool(name, arguments)
        assert result.is_error
        assert problem in text_of(result)

    converse(server, protocol, scenario)


def test_an_unknown_tool_is_an_error_that_lists_the_tools(server: McpServer, protocol: str) -> None:
    async def scenario(client: Client) -> None:
        with pytest.raises(MCPError, match=r"no tool 'nosuch'; there are: .*read_file"):
            await client.call_tool("nosuch")

    converse(server, protocol, scenario)


# Cancellation and progress


def test_a_cancelled_call_stops_and_others_go_on(server: McpServer, protocol: str) -> None:
    async def scenario(client: Client) -> None:
        with anyio.move_on_after(1) as scope:
            await client.call_tool("wait", {"seconds": 600})
        assert scope.cancelled_caught
        result = await client.call_tool("wait", {"seconds": 0})
        assert "waited 0.0 s" in text_of(result)

    converse(server, protocol, scenario)


def test_progress_is_reported_to_a_client_that_asks(
    server: McpServer, protocol: str, project: Path
) -> None:
    """The command goes on once its first line was reported."""
    reported: list[str | None] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        reported.append(message)
        (project / "seen").touch()

    async def scenario(client: Client) -> None:
        command = {"command": "echo halfway; until [ -e seen ]; do sleep 0.1; done"}
        result = await client.call_tool("run_command", command, progress_callback=note)
        assert not result.is_error
        assert reported[0] == "halfway"

    agree = Person("accept").answer
    converse(server, protocol, scenario, elicitation_callback=agree)
