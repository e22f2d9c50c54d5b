"""`efrit-budget call`: call one method."""

import argparse
import sys

from efrit_budget.cli.application import opened_application
from efrit_budget.cli.arguments import add_json_flag, json_object
from efrit_budget.cli.output import complain_about_call, print_json
from efrit_budget.errors import EfritError

NAME = "call"
HELP = "Call one method of the protocol and print its result."
EXAMPLES = """  efrit-budget call tools/list
  efrit-budget call session/open '{"root": "."}'
  efrit-budget call session/status '{"session_id": "k7m2"}' --json
  echo '{"include_closed": true}' | efrit-budget call session/list -
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments METHOD and PARAMS_JSON, and `--json`."""
    parser.add_argument("method", metavar="METHOD", help="a method, such as session/list")
    parser.add_argument(
        "params",
        metavar="PARAMS_JSON",
        nargs="?",
        type=json_object,
        default={},
        help="its parameters, a JSON object; - reads them from stdin",
    )
    add_json_flag(parser, "print the result, or the error, as JSON on one line")


def run(arguments: argparse.Namespace) -> int:
    """Call the method; print its result on stdout, or its error on stderr."""
    with opened_application(arguments) as application:
        try:
            result = application.call(arguments.method, arguments.params)
        except EfritError as error:
            if arguments.as_json:
                print_json(error.on_the_wire(), compact=True, file=sys.stderr)
            else:
                complain_about_call(error)
            return 1
    print_json(result, compact=arguments.as_json)
    return 0
