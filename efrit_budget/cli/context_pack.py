"""`efrit-budget context-pack`: print a project's memories as one text."""

import argparse
from pathlib import Path

from efrit_budget.cli.arguments import add_json_flag
from efrit_budget.cli.memory_store import (
    add_filters,
    filters_of,
    natural,
    opened_memory,
    price,
    project_here,
)
from efrit_budget.cli.output import print_text, replacing

NAME = "context-pack"
HELP = "Pack a project's memories, whole, into one text within a token budget."
EXAMPLES = """  efrit-budget context-pack --project thesis --tokens 2000
  efrit-budget context-pack 'data sources' --project thesis --kind decision --tag methodology
  efrit-budget context-pack --project thesis --json
  efrit-budget context-pack --project thesis -o context.md
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add arguments for the query, the token budget, the filters and the output file."""
    parser.add_argument(
        "query", metavar="QUERY", nargs="?", default="", help="only memories with these words"
    )
    parser.add_argument(
        "--tokens", metavar="N", type=natural, default=2000, help="the budget (default: 2000)"
    )
    add_filters(parser, project_here())
    add_json_flag(parser)
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=Path, help="write it there, replacing the file"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the context pack, or write it to a file."""
    from efrit_budget.memory.packs import Markdown, PackJson, context_pack

    form = PackJson() if arguments.as_json else Markdown()
    with opened_memory(arguments) as store:
        written = context_pack(
            store, arguments.query, filters_of(arguments), arguments.tokens, form, price()
        )
    if arguments.output is None:
        print_text(written.text)
        return 0
    with replacing(arguments.output) as stream:
        stream.write(f"{written.text}\n")
    return 0
