"""`efrit-budget estimate`: print how many tokens files cost."""

import argparse
import os

from efrit_budget.cli.arguments import add_json_flag, contents
from efrit_budget.cli.output import complain, print_json, print_table

NAME = "estimate"
HELP = "Estimate the tokens of files."
EXAMPLES = """  efrit-budget estimate prompt.md
  efrit-budget estimate src/*.py --json
  git diff | efrit-budget estimate -
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments FILE, and `--json`."""
    parser.add_argument("files", metavar="FILE", nargs="+", help="a file, or - for stdin")
    add_json_flag(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print each file's tokens and their sum; complain about files that cannot be read."""
    from efrit_budget.budget.estimate import estimate

    counted: list[tuple[str, int]] = []
    for file in arguments.files:
        try:
            counted.append((file, estimate(contents(file).decode("utf-8", "replace"))))
        except OSError as error:
            complain(f"{file}: {error.strerror or error}")
    _print(counted, as_json=arguments.as_json)
    return 0 if len(counted) == len(arguments.files) else 1


def _print(counted: list[tuple[str, int]], *, as_json: bool) -> None:
    total = sum(tokens for _, tokens in counted)
    if as_json:
        names = (os.fsencode(path).decode("utf-8", "backslashreplace") for path, _ in counted)
        files = [{"path": name, "tokens": one[1]} for name, one in zip(names, counted, strict=True)]
        print_json({"files": files, "total": total}, compact=True)
        return
    rows = [(f"{tokens:,}", path) for path, tokens in counted]
    if len(counted) > 1:
        rows.append((f"{total:,}", "total"))
    width = max((len(tokens) for tokens, _ in rows), default=0)
    if rows:
        print_table([(tokens.rjust(width), path) for tokens, path in rows])
