"""`efrit-budget tools`: list the tools."""

import argparse
import re
from typing import Any

from efrit_budget.cli.application import opened_application
from efrit_budget.cli.arguments import add_json_flag
from efrit_budget.cli.output import complain, print_json, print_table, print_text

NAME = "tools"
HELP = "List the tools, or show one and its schema."
EXAMPLES = """  efrit-budget tools
  efrit-budget tools file_info
  efrit-budget tools --json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the argument NAME, and `--json`."""
    parser.add_argument("name", metavar="NAME", nargs="?", help="show this tool only")
    add_json_flag(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print a table of all tools, or one tool with its schema."""
    with opened_application(arguments) as application:
        tools: list[dict[str, Any]] = application.call("tools/list", {})["tools"]
    if arguments.name is not None:
        return _show_one(tools, arguments.name, as_json=arguments.as_json)
    if arguments.as_json:
        print_json({"tools": tools}, compact=True)
    else:
        rows = [(tool["name"], tool["runs_in"], tool["policy"], _does(tool)) for tool in tools]
        print_table([("NAME", "RUNS IN", "POLICY", "WHAT IT DOES"), *rows])
    return 0


def _does(tool: dict[str, Any]) -> str:
    """Return the first sentence of a tool's description."""
    return re.split(r"(?<=[.!?])\s", tool["description"], maxsplit=1)[0]


def _show_one(tools: list[dict[str, Any]], name: str, *, as_json: bool) -> int:
    by_name = {tool["name"]: tool for tool in tools}
    tool = by_name.get(name)
    if tool is None:
        import difflib

        near = difflib.get_close_matches(name, by_name, n=1)
        hint = f"; the nearest is {near[0]}" if near else "; 'efrit-budget tools' lists them"
        complain(f"there is no tool {name}{hint}")
        return 1
    if as_json:
        print_json(tool, compact=True)
        return 0
    print_text(f"{name} (runs in: {tool['runs_in']}, policy: {tool['policy']})\n")
    print_text(f"{tool['description']}\n")
    print_json(tool["input_schema"], compact=False)
    return 0
