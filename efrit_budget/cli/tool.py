"""`efrit-budget tool`: run one tool as a model would."""

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from efrit_budget.cli.application import opened_application
from efrit_budget.cli.arguments import add_json_flag, folder, json_object
from efrit_budget.cli.output import ask, can_ask, complain, print_json, print_text

if TYPE_CHECKING:
    from efrit_budget.app import Application

NAME = "tool"
HELP = "Run one tool as a model would, and print its text."
EXAMPLES = """  efrit-budget tool file_info '{"paths": ["README.md"]}'
  efrit-budget tool file_info '{"paths": ["setup.py"]}' --root ~/src/other --json
  echo '{"paths": ["README.md"]}' | efrit-budget tool file_info - --session k7m2

Without --session the tool runs in a session of its own, which is deleted afterwards.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add arguments for the tool, its own arguments, and its project or session."""
    parser.add_argument("name", metavar="NAME", help="a tool; 'efrit-budget tools' lists them")
    parser.add_argument(
        "arguments",
        metavar="ARGS_JSON",
        nargs="?",
        type=json_object,
        default={},
        help="its arguments, a JSON object; - reads them from stdin",
    )
    place = parser.add_mutually_exclusive_group()
    place.add_argument(
        "--root", metavar="DIR", type=folder, help="the project (default: the current folder)"
    )
    place.add_argument("--session", metavar="ID", help="run it in this session, and record it")
    parser.add_argument("--yes", action="store_true", help="confirm without asking")
    add_json_flag(parser, "print the whole envelope as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Run the tool; print its text, or complain about the reason why it failed."""
    with opened_application(arguments) as application, _session(application, arguments) as session:
        envelope = _run_tool(application, session, arguments)
    status = envelope["status"]
    if arguments.as_json:
        print_json(envelope, compact=True)
    elif status == "error":
        complain(envelope.get("message") or envelope["text"])
    elif status == "needs_confirmation":
        complain(f"not run, nobody confirmed it (--yes does): {envelope['confirm']['question']}")
    else:
        print_text(envelope["text"])
    return 1 if status in {"error", "needs_confirmation"} else 0


@contextmanager
def _session(application: "Application", arguments: argparse.Namespace) -> Iterator[str]:
    if arguments.session:
        yield arguments.session
        return
    root = str(arguments.root or Path.cwd())
    opened = application.call("session/open", {"root": root})
    for warning in opened.get("warnings", ()):
        complain(f"warning: {warning}")
    session: str = opened["session_id"]
    try:
        yield session
    finally:
        application.call("session/delete", {"session_id": session})


def _run_tool(
    application: "Application", session: str, arguments: argparse.Namespace
) -> dict[str, Any]:
    params = {
        "session_id": session,
        "name": arguments.name,
        "arguments": arguments.arguments,
        "tool_use_id": f"command-line-{os.urandom(12).hex()}",
        "include_data": arguments.as_json,
    }
    envelope: dict[str, Any] = application.call("tools/call", params)
    if envelope["status"] != "needs_confirmation":
        return envelope
    confirm = envelope["confirm"]
    if arguments.yes or (can_ask() and ask(confirm["question"])):
        envelope = application.call("tools/call", {**params, "confirm_id": confirm["id"]})
    return envelope
