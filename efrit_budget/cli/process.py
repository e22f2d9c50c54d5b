"""Run commands as a process: exit codes, pipes and errors."""

import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper

from efrit_budget.cli.output import complain, complain_about
from efrit_budget.cli.parser import build_parser
from efrit_budget.errors import EfritError

OK, FAILED = 0, 1


def run(argv: Sequence[str]) -> int:
    """Run one command line; return 0 if it worked, 1 if it failed, 2 if it was wrong."""
    _write_what_cannot_be_encoded_as_escapes()
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


def _write_what_cannot_be_encoded_as_escapes() -> None:
    """Print names that are not UTF-8 as escapes."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _discard_output() -> None:
    """Send stdout to the null device, so that the flush at exit does not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
