"""The same calls by every door give the same texts from equal states of the ledger."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client

from efrit_budget.app import open_application
from efrit_budget.mcp_server.server import McpServer, Options
from efrit_budget.settings.load import load
from tests.cli.command import efrit
from tests.local_sidecar import LocalSidecar
from tests.mcp.clients import LEGACY, MODERN, converse, text_of

SESSION = "session"
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("project_files", {}),
    ("search_content", {"pattern": "line", "max_tokens": 300}),
    ("read_file", {"path": "long.txt"}),
    ("read_file", {"path": "long.txt"}),
    ("file_info", {"paths": ["long.txt", "nosuch"]}),
    ("recall_result", {"handle": "r2"}),
    ("recall_result", {"handle": "r99"}),
    ("read_file", {"nosuch": 1}),
]
Door = Callable[[Path], list[str]]
"""Makes the calls in a new session of a project, and returns their texts."""


def by_json_rpc(project: Path, framing: str) -> list[str]:
    """Make the calls as messages with this framing."""
    with LocalSidecar() as sidecar:
        sidecar.framing = framing
        sidecar.request("session/open", root=str(project), session_id=SESSION)
        return [
            sidecar.request(
                "tools/call",
                session_id=SESSION,
                name=name,
                arguments=arguments,
                tool_use_id=f"toolu_{number}",
            )["text"]
            for number, (name, arguments) in enumerate(CALLS)
        ]


def by_command_line(project: Path) -> list[str]:
    """Make the calls as commands."""
    opened = {"root": str(project), "session_id": SESSION}
    assert efrit("call", "session/open", json.dumps(opened)).code == 0
    options = ("--session", SESSION, "--json")
    return [
        json.loads(efrit("tool", name, json.dumps(arguments), *options).out)["text"]
        for name, arguments in CALLS
    ]


def by_mcp(project: Path, protocol: str) -> list[str]:
    """Make the calls as an MCP client."""
    found: list[str] = []

    async def scenario(client: Client) -> None:
        for name, arguments in CALLS:
            found.append(text_of(await client.call_tool(name, arguments)))

    with closing(open_application(load())) as application:
        converse(McpServer(application, project, Options(SESSION)), protocol, scenario)
    return found


@pytest.mark.parametrize(
    "door",
    [
        partial(by_json_rpc, framing="line"),
        by_command_line,
        partial(by_mcp, protocol=LEGACY),
        partial(by_mcp, protocol=MODERN),
    ],
)
def test_every_door_gives_the_texts_of_json_rpc(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, door: Door
) -> None:
    lines = (f"line {number} of a long file\n" for number in range(300))
    (project / "long.txt").write_text("".join(lines), encoding="utf-8")
    texts = by_json_rpc(project, "header")
    monkeypatch.setenv("EFRIT_BUDGET_HOME", str(tmp_path / "other"))
    assert door(project) == texts
    assert "continuation_token" in texts[1]
    assert texts[3].startswith("§ Same as r3")
