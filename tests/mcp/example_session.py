"""A session with npm's filesystem server, with the gateway before it and without.

`python -m tests.mcp.example_session` prints the table of the manual's section about the gateway,
in Markdown, for this checkout.
"""

from __future__ import annotations

import io
import json
import os
import shlex
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from unittest.mock import patch

import anyio
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp_types import Tool

from efrit_budget.app import open_application
from efrit_budget.budget.estimate import estimate
from efrit_budget.gateway.configuration import entry_of
from efrit_budget.gateway.offers import Choice
from efrit_budget.settings.load import load
from tests.emacs.batch import ROOT
from tests.mcp.clients import MODERN, TIMEOUT, behind, converse, text_of
from tests.servers.processes import environment_of

Rows = list[tuple[str, int]]
"""What enters the window, and its tokens."""
READ = "docs/protocol.md"


@contextmanager
def checkout() -> Iterator[Path]:
    """Yield a copy of the files of the latest commit."""
    with tempfile.TemporaryDirectory() as folder:
        packed = subprocess.check_output(["git", "archive", "HEAD"], cwd=ROOT)
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(folder, filter="data")
        yield Path(folder)


def filesystem_server(project: Path) -> list[str]:
    """Return the command that starts npm's filesystem server on a folder."""
    place = environment_of("mcp")
    package = place / "node_modules" / "@modelcontextprotocol" / "server-filesystem"
    return [str(place / "bin" / "node"), str(package / "dist" / "index.js"), str(project)]


def tokens_of(tools: list[Tool]) -> int:
    """Return the tokens of the schemas of tools as a model is sent them."""
    parts = [
        {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}
        for tool in tools
    ]
    return estimate(json.dumps(parts))


async def play(client: Client, prefix: str, project: Path) -> Rows:
    """Look at the tree, read a long file, search, and read the file again."""
    tree = ("directory_tree", {"path": str(project)})
    read = ("read_text_file", {"path": str(project / READ)})
    found = ("search_files", {"path": str(project), "pattern": "**/*.py"})
    rows = [("schemas of the tools", tokens_of((await client.list_tools()).tools))]
    for name, arguments in (tree, read, found, read):
        result = await client.call_tool(f"{prefix}{name}", arguments)
        rows.append((f"`{name}`", estimate(text_of(result))))
    return rows


def without_gateway(project: Path) -> Rows:
    """Play the session with the server alone."""
    command, *args = filesystem_server(project)
    rows: list[Rows] = []

    async def run() -> None:
        server = StdioServerParameters(command=command, args=args)
        with anyio.fail_after(TIMEOUT):
            async with Client(server) as client:
                rows.append(await play(client, "", project))

    anyio.run(run)
    return rows[0]


def with_gateway(project: Path, *, short: bool) -> Rows:
    """Play the session with the server behind the gateway, in a ledger of its own."""
    command = shlex.join(filesystem_server(project))
    rows: list[Rows] = []

    async def scenario(client: Client) -> None:
        rows.append(await play(client, "files__", project))

    with (
        tempfile.TemporaryDirectory() as home,
        patch.dict(os.environ, EFRIT_BUDGET_HOME=home),
        closing(open_application(load())) as application,
    ):
        entry = entry_of(f"files={command}")
        server = behind(application, project, entry, choice=Choice(short=short))
        converse(server, MODERN, scenario)
    return rows[0]


def main() -> None:
    """Print the table."""
    with checkout() as project:
        played = [without_gateway(project)]
        played += [with_gateway(project, short=short) for short in (False, True)]
    print("| | alone | gateway | gateway, `--short` |\n|---|---:|---:|---:|")
    for rows in zip(*played, strict=True):
        print(f"| {rows[0][0]} | {' | '.join(f'{tokens:,}' for _, tokens in rows)} |")
    sums = (sum(tokens for _, tokens in rows) for rows in played)
    print(f"| all | {' | '.join(f'{tokens:,}' for tokens in sums)} |")


if __name__ == "__main__":
    main()
