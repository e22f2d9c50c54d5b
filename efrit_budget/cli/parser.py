"""The table of subcommands, and the parser of the command line made from it."""

import argparse
from typing import Final, NoReturn, Protocol

from efrit_budget import PROTOCOL_VERSION, __version__
from efrit_budget.cli import (
    call,
    config,
    context_pack,
    demo_model,
    doctor,
    estimate,
    memory,
    repl,
    search,
    serve,
    sessions,
    tool,
    tools,
)
from efrit_budget.cli.arguments import add_global_flags


class Command(Protocol):
    """What each module of the table has."""

    NAME: str
    HELP: str
    EXAMPLES: str

    def configure(self, parser: argparse.ArgumentParser, /) -> None:
        """Add the command's own arguments."""

    def run(self, arguments: argparse.Namespace, /) -> int:
        """Do it, and return the exit code."""


COMMANDS: Final[tuple[Command, ...]] = (
    serve,
    call,
    tool,
    tools,
    sessions,
    search,
    context_pack,
    memory,
    config,
    doctor,
    estimate,
    repl,
    demo_model,
)

_DESCRIPTION: Final = """\
The sidecar of efrit: token budget, lossless work log and project tools for a
model that works inside Emacs. Emacs starts `serve` by itself; the other
commands are for people and scripts."""

_EXAMPLES: Final = """\
examples:
  efrit-budget doctor                          is everything here that is needed?
  efrit-budget tools                           what a model can be offered
  efrit-budget tool file_info '{"paths": ["README.md"]}'
  efrit-budget sessions                        what was worked on
  efrit-budget search 'retry policy'           what earlier sessions learned
  efrit-budget config budget.total             a setting, and where its value comes from
  efrit-budget estimate README.md              how many tokens a file has
  efrit-budget call tools/list                 any method of the protocol
  efrit-budget repl                            type requests, read replies

exit codes: 0 it worked, 1 it failed, 2 the command line was wrong
"""


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Leaves room for the longest command, which argparse measures without its indent."""

    def add_argument(self, action: argparse.Action) -> None:
        """Measure the action, too."""
        super().add_argument(action)
        longest = max(len(command.NAME) for command in COMMANDS)
        self._action_max_length = max(self._action_max_length, longest + 4)


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and where help is, and exit with 2."""
        self.exit(2, f"{self.prog}: {message} (see '{self.prog} --help')\n")


def build_parser() -> Parser:
    """Return the parser of the whole command line."""
    parser = Parser(
        prog="efrit-budget",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=Formatter,
    )
    version = f"efrit-budget {__version__} (protocol {PROTOCOL_VERSION})"
    parser.add_argument("--version", action="version", version=version)
    parser.set_defaults(db=None, verbose=False, as_json=False)
    add_global_flags(parser)
    subparsers = parser.add_subparsers(metavar="COMMAND", title="commands", required=True)
    for command in COMMANDS:
        _add_command(subparsers, command)
    return parser


def _add_command(
    subparsers: "argparse._SubParsersAction[Parser]",
    command: Command,
) -> None:
    parser = subparsers.add_parser(
        command.NAME,
        help=command.HELP,
        description=command.HELP,
        epilog=f"examples:\n{command.EXAMPLES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_global_flags(parser)
    command.configure(parser)
    parser.set_defaults(run=command.run)
