"""`efrit-budget mcp`: the tools for other clients, over MCP."""

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from efrit_budget.cli.application import opened_application
from efrit_budget.cli.arguments import folder, number_in
from efrit_budget.cli.output import complain

if TYPE_CHECKING:
    from efrit_budget.gateway.gateway import Gateway

NAME = "mcp"
HELP = "Serve the tools over MCP, and put other MCP servers behind the same budget."
EXAMPLES = """  efrit-budget mcp
  efrit-budget mcp --root ~/src/project --session k7m2
  efrit-budget mcp --with files='npx -y @modelcontextprotocol/server-filesystem .'
  efrit-budget mcp --servers ~/.config/mcp.json --deny '*__delete_*' --short

For Claude Code: claude mcp add efrit -- efrit-budget mcp --root "$PWD"
The manual has the lines for other clients, and says what --with does: M-x efrit-manual.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add flags for the project, the session, the form of replies, and other servers."""
    parser.add_argument(
        "--root", metavar="DIR", type=folder, help="the project (default: the current folder)"
    )
    parser.add_argument(
        "--session",
        metavar="NAME",
        help="a session to go on with, or a new one of this name (default: a new one)",
    )
    parser.add_argument(
        "--structured",
        action="store_true",
        help="send the facts on each result as structured content too; many clients then show "
        "the model nothing else",
    )
    _add_gateway_flags(parser.add_argument_group("other servers, each started by a command"))


def _add_gateway_flags(group: "argparse._ArgumentGroup") -> None:
    add = group.add_argument
    named: dict[str, Any] = {"action": "append", "default": []}
    add("--with", metavar="NAME=COMMAND", dest="others", help="a server (repeatable)", **named)
    add("--servers", metavar="FILE", type=Path, help="the servers of a .mcp.json")
    add(
        "--allow",
        metavar="PATTERN",
        help="offer only tools whose names match, such as 'files__read_*' (repeatable)",
        **named,
    )
    add("--deny", metavar="PATTERN", help="do not offer tools that match (repeatable)", **named)
    add("--short", action="store_true", help="shorten descriptions; tool_help shows them whole")
    add(
        "--timeout",
        metavar="SECONDS",
        type=number_in(float, 0.1, 86_400, "a time limit is 0.1 to 86400 seconds, not {!r}"),
        default=120.0,
        help="the time limit of a call (default: 120)",
    )
    add(
        "--project-tools",
        action="store_true",
        help="offer the sidecar's own tools too, not only recall_result",
    )


def run(arguments: argparse.Namespace) -> int:
    """Serve until stdin closes or a signal ends it."""
    import importlib.util

    if importlib.util.find_spec("mcp") is None:
        complain("the command mcp needs one more package: pip install 'efrit-budget[mcp]'")
        return 1
    import anyio

    from efrit_budget.mcp_server.server import McpServer, Options, serve
    from efrit_budget.project.processes import own_process

    gateway = _gateway(arguments)
    own_process.return_freed_memory()
    own_process.forget_keys()
    with opened_application(arguments) as application:
        options = Options(
            arguments.session,
            structured=arguments.structured,
            project_tools=gateway is None or arguments.project_tools,
        )
        server = McpServer(application, arguments.root or Path.cwd(), options, gateway)
        anyio.run(serve, server, application.close)
    return 0


def _gateway(arguments: argparse.Namespace) -> "Gateway | None":
    """Return the gateway to the other servers, or None if none is named."""
    if not arguments.others and arguments.servers is None:
        return None
    from efrit_budget.errors import EfritError
    from efrit_budget.gateway.child import BEHIND
    from efrit_budget.gateway.configuration import entry_of, read_servers
    from efrit_budget.gateway.gateway import Gateway
    from efrit_budget.gateway.offers import Choice

    if BEHIND in os.environ:
        raise EfritError("another gateway starts this one; take it out of the servers there")
    entries = [entry_of(text) for text in arguments.others]
    if arguments.servers is not None:
        servers = read_servers(arguments.servers)
        entries += servers.entries(os.environ)
        for name in servers.left_out:
            complain(f"{arguments.servers}: {name} is left out, since no command starts it")
    choice = Choice(arguments.allow, arguments.deny, arguments.short)
    return Gateway(entries, choice, arguments.timeout)
