"""`efrit-budget search`: print matching observations, best first."""

import argparse

from efrit_budget.cli.arguments import add_json_flag
from efrit_budget.cli.memory_store import (
    add_filters,
    filters_of,
    natural,
    opened_memory,
    positive,
    price,
)
from efrit_budget.cli.output import print_text

NAME = "search"
HELP = "Search memory: one line for each, the best first."
EXAMPLES = """  efrit-budget search 'experiment results' --token-budget 1500
  efrit-budget search methodology --kind decision --project thesis
  efrit-budget search 'retry*' --tag network --limit 50 --json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add arguments for the query, the limits and the filters."""
    parser.add_argument("query", metavar="QUERY", help="words; word* finds words that begin so")
    parser.add_argument(
        "--token-budget",
        metavar="N",
        type=natural,
        help="the most tokens of the whole answer",
    )
    parser.add_argument(
        "--limit", metavar="N", type=positive, default=10, help="the most results (default: 10)"
    )
    add_filters(parser)
    add_json_flag(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the matching observations; `--limit` applies before the token budget."""
    from efrit_budget.memory.packing import Pack, pack
    from efrit_budget.memory.packs import ListJson, ListLines

    filters = filters_of(arguments)
    with opened_memory(arguments) as store:
        found = store.search(arguments.query, filters, arguments.limit)
    empty = Pack(found.total, arguments.token_budget, filters.project, found.any_word)
    candidates = [each.observation for each in found.candidates]
    form = ListJson() if arguments.as_json else ListLines()
    print_text(pack(empty, candidates, form, price()).text)
    return 0
