"""Other servers as the person names them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client import Client

from efrit_budget.gateway.child import BEHIND
from efrit_budget.gateway.configuration import (
    ConfigurationError,
    ServerEntry,
    check_names,
    entry_of,
    read_servers,
)
from tests.cli.command import efrit
from tests.mcp import fake_server
from tests.mcp.clients import TIMEOUT, text_of, without_footer
from tests.mcp.test_process import started
from tests.sidecar import PROGRAM

FAKE = Path(fake_server.__file__)


def write(folder: Path, servers: dict[str, Any]) -> Path:
    """Write a `.mcp.json`."""
    file = folder / ".mcp.json"
    file.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    return file


def test_a_command_is_split_as_a_shell_does() -> None:
    found = entry_of("files=npx -y server 'my folder'")
    assert found == ServerEntry("files", "npx", ["-y", "server", "my folder"])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("files", "is not NAME=COMMAND"),
        ("files=", "is not NAME=COMMAND"),
        ("my files=npx", "'my files' is no name for a server"),
        ("files=npx 'open", "No closing quotation"),
    ],
)
def test_what_is_no_server_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        entry_of(text)


def test_a_file_names_servers_and_the_variables_they_get(tmp_path: Path) -> None:
    server = {
        "command": "${TOOLS}/server",
        "args": ["--level", "${LEVEL:-info}"],
        "env": {"TOKEN": "${GITHUB_TOKEN}"},
        "cwd": "/srv/app",
        "type": "stdio",
    }
    file = write(tmp_path, {"github": server, "far": {"type": "http", "url": "https://x.test"}})
    found = read_servers(file)
    entries = found.entries({"TOOLS": "/opt", "GITHUB_TOKEN": "t0"})
    assert entries == [
        ServerEntry("github", "/opt/server", ["--level", "info"], {"TOKEN": "t0"}, "/srv/app")
    ]
    assert found.left_out == ["far"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("{", "Invalid JSON"),
        ("{}", "mcpServers: Field required"),
        ('{"mcpServers": {"a": {"command": 7}}}', "mcpServers.a.command"),
        ('{"mcpServers": {"a b": {"command": "x"}}}', "'a b' is no name for a server"),
        ('{"mcpServers": {"a": {"command": "${NOSUCH}"}}}', "the variable NOSUCH is not set"),
    ],
)
def test_a_file_that_is_wrong_is_refused(tmp_path: Path, content: str, problem: str) -> None:
    file = tmp_path / ".mcp.json"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(ConfigurationError, match=problem):
        read_servers(file).entries({})


def test_a_file_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read: No such file"):
        read_servers(tmp_path / "nosuch.json")


def test_two_servers_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="two servers are named a"):
        check_names([entry_of("a=x"), entry_of("a=y")])


# The command


def test_the_command_runs_the_servers_of_a_file(home: Path, project: Path) -> None:
    """One gets the variable that its entry names, and no other key."""
    fake = {"command": sys.executable, "args": [str(FAKE)], "env": {"TOKEN": "${MY_TOKEN}"}}
    file = write(project, {"fake": fake, "far": {"url": "https://x.test"}})
    server = started(home, "--servers", str(file), "--deny", "*__die")
    server = server.model_copy(
        update={"env": {**(server.env or {}), "MY_TOKEN": "t0", "OPENAI_API_KEY": "k0"}}
    )

    async def scenario() -> None:
        with anyio.fail_after(TIMEOUT):
            async with Client(server) as client:
                names = [tool.name for tool in (await client.list_tools()).tools]
                assert "fake__count" in names
                assert not {"fake__die", "read_file"} & set(names)
                shown = text_of(await client.call_tool("fake__environment"))
                assert json.loads(without_footer(shown))["TOKEN"] == "t0"
                assert "k0" not in shown

    anyio.run(scenario)


def test_project_tools_are_offered_beside_them_if_asked_for(home: Path, project: Path) -> None:
    command = f"fake={sys.executable} {FAKE}"
    server = started(home, "--with", command, "--project-tools", "--root", str(project))

    async def scenario() -> None:
        with anyio.fail_after(TIMEOUT):
            async with Client(server) as client:
                names = {tool.name for tool in (await client.list_tools()).tools}
                assert {"fake__count", "read_file"} <= names

    anyio.run(scenario)


def test_a_signal_ends_the_servers_too(project: Path, tmp_path: Path) -> None:
    """A server that does not heed the end of its input is killed."""
    stubborn = (
        "import os, pathlib, time\n"
        f"pathlib.Path({str(tmp_path / 'pid')!r}).write_text(str(os.getpid()))\n"
        "while True: time.sleep(1)\n"
    )
    file = tmp_path / "stubborn.py"
    file.write_text(stubborn, encoding="utf-8")
    command = [*PROGRAM, "mcp", "--root", str(project), "--with", f"a={sys.executable} {file}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
        process.stdin.flush()
        assert process.stdout.readline()
        anyio.run(_until_written, tmp_path / "pid")
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT) == 0
    number = int((tmp_path / "pid").read_text(encoding="utf-8"))
    assert not Path(f"/proc/{number}").exists()


async def _until_written(file: Path) -> None:
    with anyio.fail_after(TIMEOUT):
        while not (file.exists() and file.read_text(encoding="utf-8")):
            await anyio.sleep(0.05)


def test_a_gateway_behind_a_gateway_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a file that names this command would start it without end."""
    monkeypatch.setenv(BEHIND, "1")
    ended = efrit("mcp", "--with", "a=b")
    assert ended.code == 1
    assert "another gateway starts this one" in ended.complaint
