"""`efrit-budget mcp`: the tools for other clients, over MCP."""

import argparse
from pathlib import Path

from efrit_budget.cli.application import opened_application
from efrit_budget.cli.arguments import folder
from efrit_budget.cli.output import complain

NAME = "mcp"
HELP = "Serve the tools over MCP on stdin and stdout, for Claude Code, Codex and others."
EXAMPLES = """  efrit-budget mcp
  efrit-budget mcp --root ~/src/project --session k7m2

For Claude Code: claude mcp add efrit -- efrit-budget mcp --root "$PWD"
docs/clients.md has the lines for other clients.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add flags for the project, the session, and the form of replies."""
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


def run(arguments: argparse.Namespace) -> int:
    """Serve until stdin closes or a signal ends it."""
    import importlib.util

    if importlib.util.find_spec("mcp") is None:
        complain("the command mcp needs one more package: pip install 'efrit-budget[mcp]'")
        return 1
    import anyio

    from efrit_budget.mcp_server.server import McpServer, serve
    from efrit_budget.project.processes import own_process

    own_process.return_freed_memory()
    own_process.forget_keys()
    with opened_application(arguments) as application:
        root = arguments.root or Path.cwd()
        server = McpServer(application, root, arguments.session, structured=arguments.structured)
        anyio.run(serve, server, application.close)
    return 0
