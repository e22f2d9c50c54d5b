"""Arguments that several commands share."""

import argparse
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from efrit_budget.errors import ParseError
from efrit_budget.wire.jsontext import parse

Number = TypeVar("Number", int, float)


def add_global_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags that may stand before and after the command's name."""
    parser.add_argument(
        "--db",
        metavar="PATH",
        type=Path,
        default=argparse.SUPPRESS,
        help="use this database instead of the configured one",
    )
    parser.add_argument(
        "--verbose",
        action="store_true",
        default=argparse.SUPPRESS,
        help="write the log to stderr too",
    )


def add_json_flag(parser: argparse.ArgumentParser, text: str = "print JSON") -> None:
    """Add `--json`; without a default, so that an action does not reset its command's flag."""
    parser.add_argument(
        "--json", action="store_true", dest="as_json", default=argparse.SUPPRESS, help=text
    )


def contents(file: str) -> bytes:
    """Return the content of a file; `-` stands for stdin."""
    return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()


def json_object(text: str) -> dict[str, Any]:
    """Parse an argument that is a JSON object; `-` reads it from stdin."""
    raw = sys.stdin.buffer.read() if text == "-" else text.encode(errors="surrogateescape")
    try:
        value = parse(raw)
    except ParseError as error:
        raise argparse.ArgumentTypeError(f"this is not JSON: {error.message}") from error
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError('a JSON object is needed, such as {"root": "."}')
    return value


def run_action(arguments: argparse.Namespace) -> int:
    """Run the action that the command line names; return its exit code."""
    act: Callable[[argparse.Namespace], int] = arguments.act
    return act(arguments)


def number_in(
    kind: Callable[[str], Number], least: float, most: float, problem: str
) -> Callable[[str], Number]:
    """Return a parser of numbers in a range; `problem` is the error, with `{!r}` for the text."""

    def parsed(text: str) -> Number:
        with suppress(ValueError):
            found = kind(text)
            if least <= found <= most:
                return found
        raise argparse.ArgumentTypeError(problem.format(text))

    return parsed


def folder(text: str) -> Path:
    """Return the absolute path of a folder; raise if it does not exist."""
    path = Path(text).expanduser().absolute()
    if not path.is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {text}")
    return path
