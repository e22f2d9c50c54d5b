"""The subcommands, the parser of the command line, and the exit code of a run."""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper
from typing import Final, NoReturn

from efrit_budget import PROTOCOL_VERSION, __version__
from efrit_budget.cli.arguments import add_global_flags
from efrit_budget.cli.output import complain, complain_about
from efrit_budget.errors import EfritError

_MODULES: Final = (
    *("serve", "call", "tool", "tools", "sessions", "search", "context_pack", "memory", "config"),
    *("mcp", "doctor", "estimate", "repl", "replay", "demo_model", "installer"),
    *("elisp_path", "completion"),
)
COMMANDS: Final = tuple(import_module(f"efrit_budget.cli.{name}") for name in _MODULES)
"""The modules of the subcommands.

Each has its NAME, HELP and EXAMPLES, `configure(parser)`, which adds its own arguments, and
`run(arguments)`, which returns the exit code.
"""
OK, FAILED = 0, 1
_NAMES: Final = tuple(command.NAME for command in COMMANDS)
_DESCRIPTION: Final = """\
The sidecar of efrit: token budget, lossless work log and project tools for a
model that works inside Emacs. Emacs starts `serve` by itself; the other
commands are for people and scripts."""

_EXAMPLES: Final = """\
examples:
  efrit-budget doctor                          check the installation
  efrit-budget tools                           list the tools
  efrit-budget tool file_info '{"paths": ["README.md"]}'
  efrit-budget sessions                        list the sessions
  efrit-budget search 'retry policy'           search memory
  efrit-budget config budget.total             show a setting and its source
  efrit-budget estimate README.md              estimate a file's tokens
  efrit-budget call tools/list                 call a method of the protocol
  efrit-budget repl                            type requests and read replies

exit codes: 0 it worked, 1 it failed, 2 the command line was wrong
"""


class Formatter(argparse.RawDescriptionHelpFormatter):
    """A help formatter with room for the longest command."""

    def add_argument(self, action: argparse.Action) -> None:
        """Add an action, and widen the first column for the longest command."""
        super().add_argument(action)
        longest = max(len(command.NAME) for command in COMMANDS)
        self._action_max_length = max(self._action_max_length, longest + 4)


class Parser(argparse.ArgumentParser):
    """A parser that reports an error on one line."""

    def error(self, message: str) -> NoReturn:
        """Print the error and the command for help on one line; exit with 2."""
        self.exit(2, f"{self.prog}: {message} (see '{self.prog} --help')\n")


def build_parser(words: Sequence[str] = _NAMES) -> Parser:
    """Return a parser for the command line `words`; by default, for any command line.

    A command that is not among the words gets no arguments of its own, which is faster.
    """
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
        added = subparsers.add_parser(
            command.NAME,
            help=command.HELP,
            description=command.HELP,
            epilog=f"examples:\n{command.EXAMPLES}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if command.NAME in words:
            add_global_flags(added)
            command.configure(added)
            added.set_defaults(run=command.run)
    return parser


def run(argv: Sequence[str]) -> int:
    """Run one command line; return 0 if it worked, 1 if it failed, 2 if it was wrong."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # names that are not UTF-8 are printed as escapes
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _run_command(argv)
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()
        return OK
    except EfritError as error:
        complain_about(error)
        return FAILED
    except OSError as error:
        _discard_output()
        complain(str(error))
        return FAILED
    return code


def _run_command(argv: Sequence[str]) -> int:
    try:
        arguments = build_parser(argv).parse_args(argv)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else OK
    code: int = arguments.run(arguments)
    return code


def _discard_output() -> None:
    """Send stdout to the null device, so that the flush at exit does not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
