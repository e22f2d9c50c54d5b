"""The command `efrit-budget mcp` as a process, as clients start it."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import anyio
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

from tests.cli.command import efrit
from tests.mcp.clients import MODERN, TIMEOUT, text_of
from tests.sidecar import PROGRAM

PACKAGE = Path(__file__).parent.parent.parent / "efrit_budget"
SDK = {"mcp", "mcp_types", "anyio"}


def started(home: Path, *arguments: str) -> StdioServerParameters:
    """Return how a client starts the command."""
    program, *first = PROGRAM
    return StdioServerParameters(
        command=program,
        args=[*first, "mcp", *arguments],
        env={"EFRIT_BUDGET_HOME": str(home / "efrit"), "HOME": str(home)},
    )


@pytest.mark.parametrize("mode", ["legacy", "auto", MODERN])
def test_a_client_starts_the_command_and_calls_a_tool(home: Path, project: Path, mode: str) -> None:
    (project / "notes.md").write_text("# Notes\n", encoding="utf-8")

    async def scenario() -> None:
        server = started(home, "--root", str(project), "--session", "k7m2")
        with anyio.fail_after(TIMEOUT):
            async with Client(server, mode=mode) as client:
                assert client.protocol_version == ("2025-11-25" if mode == "legacy" else MODERN)
                result = await client.call_tool("file_info", {"paths": ["notes.md"]})
                assert text_of(result).startswith("notes.md: file text, 8 bytes")

    anyio.run(scenario)
    printed = efrit("tool", "recall_result", '{"handle": "r1"}', "--session", "k7m2")
    assert printed.out.startswith("notes.md: file text, 8 bytes")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_command_though_its_input_is_open(
    project: Path, number: signal.Signals
) -> None:
    command = [*PROGRAM, "mcp", "--root", str(project)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
        process.stdin.flush()
        assert process.stdout.readline()
        process.send_signal(number)
        assert process.wait(TIMEOUT) == 0


def test_without_the_package_the_command_says_what_to_install() -> None:
    with patch("importlib.util.find_spec", return_value=None):
        ended = efrit("mcp")
    assert ended.code == 1
    assert "pip install 'efrit-budget[mcp]'" in ended.complaint


def test_a_session_of_another_project_is_a_complaint(project: Path, tmp_path: Path) -> None:
    efrit("call", "session/open", f'{{"root": "{tmp_path}", "session_id": "k7m2"}}')
    ended = subprocess.run(
        [*PROGRAM, "mcp", "--root", str(project), "--session", "k7m2"],
        capture_output=True,
        text=True,
        env=dict(os.environ),
        timeout=TIMEOUT,
        check=False,
    )
    assert ended.returncode == 1
    assert ended.stderr.startswith("efrit-budget: session 'k7m2' belongs to")


def imported(file: Path) -> set[str]:
    """Return the distributions and rooms that a file imports, by their first names."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found


def test_only_the_mcp_server_imports_the_sdk() -> None:
    users = {file for file in PACKAGE.rglob("*.py") if imported(file) & SDK}
    rooms = {file.relative_to(PACKAGE).parts[0] for file in users}
    assert rooms == {"mcp_server", "gateway", "cli"}
    assert {file.name for file in users if file.parent.name == "cli"} == {"mcp.py"}


def test_serving_emacs_loads_nothing_of_the_sdk() -> None:
    program = (
        "import sys\nimport efrit_budget.cli.parser, efrit_budget.app, efrit_budget.serve\n"
        f"assert not {SDK!r} & set(sys.modules), sorted({SDK!r} & set(sys.modules))"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=TIMEOUT)
