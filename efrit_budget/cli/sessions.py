"""`efrit-budget sessions`: list, rename, export, delete and purge sessions."""

import argparse
import time
from functools import partial
from typing import Any

from efrit_budget.cli.application import opened_application
from efrit_budget.cli.arguments import add_global_flags, add_json_flag, folder, run_action
from efrit_budget.cli.output import ask_consent, complain_about, print_json, print_table
from efrit_budget.errors import EfritError

NAME = "sessions"
HELP = "List, rename, export, delete and purge sessions."
EXAMPLES = """  efrit-budget sessions
  efrit-budget sessions list --all --root ~/src/project
  efrit-budget sessions rename k7m2 'the parser'
  efrit-budget sessions export k7m2
  efrit-budget sessions purge k7m2             delete its contents, keep its line
  efrit-budget sessions delete k7m2 p3qd --yes
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add a subcommand for each action; without an action, sessions are listed."""
    parser.set_defaults(act=_list, root=None, include_closed=False)
    _add_list_flags(parser)
    actions = parser.add_subparsers(metavar="ACTION", title="actions")
    listing = actions.add_parser(
        "list",
        help="list sessions (also without an action)",
        epilog="example: efrit-budget sessions list --all",
    )
    listing.set_defaults(act=_list)
    add_global_flags(listing)
    _add_list_flags(listing)
    rename = actions.add_parser("rename", help="give a session another title")
    rename.epilog = f"example: {rename.prog} k7m2 'the parser'"
    rename.set_defaults(act=_rename)
    rename.add_argument("id", metavar="ID")
    rename.add_argument("title", metavar="TITLE")
    add_global_flags(rename)
    add_json_flag(rename)
    export = actions.add_parser("export", help="print a session as JSON lines, for replay")
    export.set_defaults(act=_export)
    export.epilog = f"example: {export.prog} k7m2"
    export.add_argument("id", metavar="ID")
    add_global_flags(export)
    for name, help_text, loss in (
        ("delete", "delete sessions with everything in them", "with everything in them"),
        ("purge", "delete what sessions stored, keep their lines", "losing what they stored"),
    ):
        removal = actions.add_parser(name, help=help_text)
        removal.set_defaults(act=partial(_remove, name, loss))
        removal.epilog = f"example: {removal.prog} k7m2 p3qd --yes"
        removal.add_argument("ids", metavar="ID", nargs="+")
        removal.add_argument("--yes", action="store_true", help="do not ask")
        add_global_flags(removal)
        add_json_flag(removal)


run = run_action


def _add_list_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--root",
        metavar="DIR",
        type=folder,
        default=argparse.SUPPRESS,
        help="only sessions of this project",
    )
    parser.add_argument(
        "--all",
        action="store_true",
        dest="include_closed",
        default=argparse.SUPPRESS,
        help="closed sessions too",
    )
    add_json_flag(parser)


def _list(arguments: argparse.Namespace) -> int:
    params: dict[str, Any] = {"include_closed": arguments.include_closed}
    if arguments.root is not None:
        params["root"] = str(arguments.root)
    with opened_application(arguments) as application:
        sessions = application.call("session/list", params)["sessions"]
    if arguments.as_json:
        print_json({"sessions": sessions}, compact=True)
    elif sessions:
        print_table([_HEADING, *map(_row, sessions)])
    else:
        print("There is no session." if arguments.include_closed else "There is no open session.")
    return 0


_HEADING = ("ID", "STATE", "TOUCHED", "CALLS", "ROOT", "TITLE")


def _row(session: dict[str, Any]) -> tuple[str, ...]:
    return (
        session["session_id"],
        session["state"],
        time.strftime("%Y-%m-%d %H:%M", time.localtime(session["touched"])),
        str(session["calls"]),
        session["root"],
        session["title"] or "",
    )


def _rename(arguments: argparse.Namespace) -> int:
    params = {"session_id": arguments.id, "title": arguments.title}
    with opened_application(arguments) as application:
        result = application.call("session/rename", params)
    if arguments.as_json:
        print_json(result, compact=True)
    return 0


def _export(arguments: argparse.Namespace) -> int:
    from efrit_budget.replay.exported import exported

    with opened_application(arguments) as application:
        reply = application.call("session/transcript", {"session_id": arguments.id})
    for line in exported(arguments.id, reply["turns"]):
        print_json(line, compact=True)
    return 0


def _remove(verb: str, loss: str, arguments: argparse.Namespace) -> int:
    """Delete or purge the sessions if the person agrees; complain about those that fail."""
    ids: list[str] = list(dict.fromkeys(arguments.ids))
    done = f"{verb}d"
    question = f"{verb.capitalize()} {', '.join(ids)}, {loss}?"
    if not arguments.yes and not ask_consent(question, f"nothing was {done}"):
        return 1
    removed = []
    with opened_application(arguments) as application:
        for session_id in ids:
            try:
                application.call(f"session/{verb}", {"session_id": session_id})
                removed.append(session_id)
            except EfritError as error:
                complain_about(error)
        application.finish_removing()
    if arguments.as_json:
        print_json({done: removed}, compact=True)
    elif removed:
        print(f"{done}: {', '.join(removed)}")
    return 0 if len(removed) == len(ids) else 1
