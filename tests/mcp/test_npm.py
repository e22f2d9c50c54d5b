"""npm's inspector as a client, and npm's servers behind the gateway."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

from efrit_budget.app import Application
from efrit_budget.budget.estimate import estimate
from efrit_budget.gateway.configuration import ServerEntry
from tests.mcp import example_session, fake_server
from tests.mcp.clients import MODERN, TIMEOUT, behind, converse, delivered, fact, text_of
from tests.servers.processes import environment_of
from tests.sidecar import PROGRAM

pytestmark = pytest.mark.soak(alone=True)

SCOPE = "@modelcontextprotocol"


@pytest.fixture(scope="module")
def node() -> Path:
    """The environment with Node.js and npm's programs."""
    return environment_of("mcp")


def program(node: Path, name: str, script: str) -> list[str]:
    """Return the command that runs a script of a package."""
    return [str(node / "bin" / "node"), str(node / "node_modules" / SCOPE / name / script)]


class Inspector:
    """npm's inspector, which starts our command anew for each request."""

    def __init__(self, node: Path, project: Path) -> None:
        self._command = [
            *program(node, "inspector", "cli/build/cli.js"),
            *("--cli", *PROGRAM, "mcp", "--root", str(project), "--session", "k7m2"),
        ]

    def run(self, method: str, *options: str) -> subprocess.CompletedProcess[str]:
        """Send one request."""
        command = [*self._command, "--method", method, *options]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT)

    def ask(self, method: str, *options: str) -> dict[str, Any]:
        """Return the result of a request, which must succeed."""
        ended = self.run(method, *options)
        assert ended.returncode == 0, ended.stderr
        result: dict[str, Any] = json.loads(ended.stdout)
        return result

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return the result of a tool call."""
        given = [
            f"{name}={value if isinstance(value, str) else json.dumps(value)}"
            for name, value in arguments.items()
        ]
        options = [word for each in given for word in ("--tool-arg", each)]
        return self.ask("tools/call", "--tool-name", tool, *options)


def test_the_inspector_lists_calls_and_reads(node: Path, project: Path) -> None:
    (project / "notes.md").write_text("# Notes\n", encoding="utf-8")
    inspector = Inspector(node, project)
    tools = {tool["name"]: tool for tool in inspector.ask("tools/list")["tools"]}
    first = inspector.call("file_info", paths=["notes.md"])
    recalled = inspector.call("recall_result", handle="r1")
    stored = inspector.ask("resources/read", "--uri", "efrit://k7m2/results/r1")
    listed = inspector.ask("resources/list")["resources"]
    assert tools["run_command"]["annotations"]["destructiveHint"]
    assert first["content"][0]["text"].startswith("notes.md: file text, 8 bytes")
    assert recalled["content"][0]["text"].startswith("notes.md: file text, 8 bytes")
    assert stored["contents"][0]["text"].startswith("notes.md: file text, 8 bytes")
    assert [each["uri"] for each in listed][:2] == [
        "efrit://k7m2/budget",
        "efrit://k7m2/results/r1",
    ]
    assert inspector.ask("resources/templates/list")["resourceTemplates"]
    assert inspector.ask("prompts/list")["prompts"][0]["name"] == "context_pack"
    packed = inspector.ask("prompts/get", "--prompt-name", "context_pack")
    assert "Project Context" in packed["messages"][0]["content"]["text"]


def test_the_inspector_is_told_what_is_wrong(node: Path, project: Path) -> None:
    inspector = Inspector(node, project)
    unknown = inspector.run("tools/call", "--tool-name", "nosuch")
    wrong = inspector.call("file_info", nosuch=1)
    asked = inspector.call("run_command", command="echo ran")
    assert unknown.returncode != 0
    assert "no tool 'nosuch'" in unknown.stderr
    assert wrong["isError"]
    assert "nosuch" in wrong["content"][0]["text"]
    assert asked["isError"]
    assert "this client cannot ask" in asked["content"][0]["text"]


def test_every_tool_can_be_called_by_the_inspector(node: Path, project: Path) -> None:
    """Without the arguments that some need, the reply says which are missing."""
    inspector = Inspector(node, project)
    for tool in inspector.ask("tools/list")["tools"]:
        result = inspector.call(tool["name"])
        (block,) = result["content"]
        assert "📏" in block["text"]
        if tool["inputSchema"].get("required"):
            assert "Field required" in block["text"]


# Gateway


def entry(name: str, command: list[str]) -> ServerEntry:
    """Return how a server of this name is started."""
    return ServerEntry(name, command[0], command[1:])


async def page_through(client: Client, tool: str, most: int, **arguments: Any) -> list[str]:
    """Call a tool, check that no page passes its allowance, and return the pages."""
    result = await client.call_tool(tool, {**arguments, "max_tokens": most})
    pages = []
    while (token := fact(result, "continuation_token")) is not None:
        assert fact(result, "tokens") <= most
        page, _, _ = delivered(result).rstrip("\n").rpartition("\n")
        pages.append(page)
        again = {"continuation_token": token, "max_tokens": most}
        result = await client.call_tool("recall_result", again)
    assert fact(result, "tokens") <= most
    return [*pages, delivered(result)]


def stored(application: Application, handle: str) -> str:
    """Return a stored result."""
    params = {"session_id": "k7m2", "handle": handle}
    text: str = application.call("worklog/show", params)["text"]
    return text


def test_files_come_through_whole_and_within_the_allowance(
    node: Path, project: Path, application: Application
) -> None:
    text = "".join(f"line {number} of a file that npm's server reads\n" for number in range(5_000))
    (project / "long.txt").write_text(text, encoding="utf-8")
    command = example_session.filesystem_server(project)
    path = str(project / "long.txt")

    async def scenario(client: Client) -> None:
        async with Client(StdioServerParameters(command=command[0], args=command[1:])) as direct:
            theirs = await direct.call_tool("read_text_file", {"path": path})
        first = await client.call_tool("files__read_text_file", {"path": path})
        again = await client.call_tool("files__read_text_file", {"path": path})
        assert estimate(text_of(theirs)) > 40_000
        assert fact(first, "tokens") <= 8_000
        assert text_of(again).startswith("§ Same as r1")
        assert stored(application, "r1") == text_of(theirs) == text
        pages = await page_through(client, "files__read_text_file", 2_000, path=path, head=2_000)
        assert "".join(pages).replace("\n", "") == text[: text.index("line 2000 ")].replace(
            "\n", ""
        )

    converse(behind(application, project, entry("files", command)), MODERN, scenario)


def test_a_session_costs_less_behind_the_gateway(project: Path) -> None:
    for number in range(300):
        (project / f"file-{number}.py").write_text("pass\n", encoding="utf-8")
    (project / "docs").mkdir()
    lines = "".join(f"line {number} of the protocol\n" for number in range(5_000))
    (project / example_session.READ).write_text(lines, encoding="utf-8")
    alone = dict(example_session.without_gateway(project))
    behind_us = dict(example_session.with_gateway(project, short=True))
    assert behind_us["schemas of the tools"] < alone["schemas of the tools"]
    assert sum(behind_us.values()) * 3 < sum(alone.values())


def test_every_tool_of_a_real_server_gives_what_it_gives_without_us(
    node: Path, project: Path, application: Application
) -> None:
    command = [*program(node, "server-everything", "dist/index.js"), "stdio"]
    given: dict[str, dict[str, Any]] = {
        "echo": {"message": "§ hello"},
        "get-sum": {"a": 2, "b": 3},
        "get-structured-content": {"location": "New York"},
        "get-resource-links": {"count": 2},
        "trigger-long-running-operation": {"duration": 1, "steps": 2},
    }

    async def scenario(client: Client) -> None:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert {f"everything__{name}" for name in given} <= set(names)
        async with Client(StdioServerParameters(command=command[0], args=command[1:])) as direct:
            for name, arguments in given.items():
                theirs = await direct.call_tool(name, arguments)
                ours = await client.call_tool(f"everything__{name}", arguments)
                assert ours.is_error == theirs.is_error
                for block in theirs.content:
                    if block.type == "text":
                        assert block.text.removeprefix("§") in text_of(ours)

    converse(behind(application, project, entry("everything", command)), MODERN, scenario)


def test_a_real_server_that_is_killed_in_a_call_is_started_again(
    node: Path, project: Path, application: Application
) -> None:
    command = [*program(node, "server-everything", "dist/index.js"), "stdio"]
    tool = "everything__trigger-long-running-operation"

    async def scenario(client: Client) -> None:
        await client.list_tools()

        async def kill(progress: float, total: float | None, message: str | None) -> None:
            for process in Path("/proc").glob("[0-9]*"):
                if is_ours(process, command):
                    os.kill(int(process.name), signal.SIGKILL)

        arguments = {"duration": 60, "steps": 60}
        died = await client.call_tool(tool, arguments, progress_callback=kill)
        assert died.is_error
        assert "the server everything ended during this call" in text_of(died)
        after = await client.call_tool("everything__get-sum", {"a": 2, "b": 3})
        assert "The sum of 2 and 3 is 5." in text_of(after)

    converse(behind(application, project, entry("everything", command)), MODERN, scenario)


def is_ours(process: Path, command: list[str]) -> bool:
    """Return whether a process is a child of this one and runs a command."""
    try:
        words = (process / "cmdline").read_bytes().decode().split("\0")
        parent = (process / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1]
    except OSError:
        return False
    return words[: len(command)] == command and int(parent) == os.getpid()


@pytest.mark.parametrize(
    ("of", "size"), [("prose", 5_000_000), ("lines", 250_000), ("json", 90_000), ("list", 40_000)]
)
def test_five_megabytes_come_in_pages_that_are_together_the_whole(
    project: Path, application: Application, of: str, size: int
) -> None:
    command = [sys.executable, fake_server.__file__]
    whole = "\n".join(block["text"] for block in fake_server.FORMS[of](size)["content"])
    assert len(whole) > 2_000_000

    async def scenario(client: Client) -> None:
        with anyio.fail_after(TIMEOUT * 10):
            pages = await page_through(client, "fake__forms", 50_000, of=of, size=size)
        assert stored(application, "r1") == whole
        assert "".join(pages).replace("\n", "") == whole.replace("\n", "")

    limits = {"total": 1_000_000, "per_tool_default": 100_000}
    opened = {"root": str(project), "session_id": "k7m2", "limits": limits}
    application.call("session/open", opened)
    converse(behind(application, project, entry("fake", command)), MODERN, scenario)
