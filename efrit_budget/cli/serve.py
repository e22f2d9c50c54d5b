"""`efrit-budget serve`: the sidecar on stdin and stdout."""

import argparse

from efrit_budget.cli.application import loaded_settings

NAME = "serve"
HELP = "Run the sidecar: JSON-RPC 2.0 over stdin and stdout."
EXAMPLES = """  efrit-budget serve
  efrit-budget serve --verbose --db /tmp/try.sqlite3
  echo '{"jsonrpc":"2.0","id":1,"method":"tools/list"}' | efrit-budget serve
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add nothing: there are only the global flags."""
    del parser


def run(arguments: argparse.Namespace) -> int:
    """Serve until stdin closes or a signal ends it."""
    from efrit_budget.serve import serve

    return serve(lambda: loaded_settings(arguments), verbose=arguments.verbose)
