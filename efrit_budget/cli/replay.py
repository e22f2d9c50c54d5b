"""`efrit-budget replay`: say what recorded sessions would have cost here and elsewhere."""

import argparse
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from efrit_budget.cli.arguments import add_json_flag, number_in
from efrit_budget.cli.memory_store import natural
from efrit_budget.cli.output import complain, print_json, print_table, replacing

if TYPE_CHECKING:
    from efrit_budget.replay.recording import Recording
    from efrit_budget.replay.replaying import Clearing, Replay

NAME = "replay"
HELP = "Replay recorded sessions: prompts, prices, and what stood in the window when needed."
EXAMPLES = """  efrit-budget replay session.jsonl
  efrit-budget replay s*.jsonl --total 50000 --model claude-opus-4-6
  efrit-budget replay session.jsonl --plot window.svg --json
"""
DEFAULT_MODEL = "claude-sonnet-5-5"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add arguments for the files, the budget, the API's clearing, and the form of the answer."""
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="+",
        type=Path,
        help="JSON lines of Claude Code, of pi, or of efrit-budget sessions export; .gz too",
    )
    tokens = number_in(int, 1_000, 10_000_000, "{!r} is no number of tokens from 1,000 on")
    parser.add_argument("--total", metavar="N", type=tokens, help="the whole budget")
    parser.add_argument(
        "--model",
        metavar="M",
        default=DEFAULT_MODEL,
        help=f"the model whose prices and tokens count (default: {DEFAULT_MODEL})",
    )
    clearing = parser.add_argument_group("the API's clearing, beside which the budget is priced")
    clearing.add_argument(
        "--clear-at", metavar="N", type=natural, help="its trigger (default: the prompt's limit)"
    )
    clearing.add_argument(
        "--clear-keep", metavar="N", type=natural, default=3, help="the results it keeps"
    )
    clearing.add_argument(
        "--clear-at-least",
        metavar="N",
        type=natural,
        help="the least tokens it clears (default: the cheapest for each session)",
    )
    clearing.add_argument("--clear-inputs", action="store_true", help="clear tools' inputs as well")
    parser.add_argument(
        "--plot", metavar="OUT.svg", type=Path, help="draw the tokens of the prompts over the turns"
    )
    add_json_flag(parser)


def run(arguments: argparse.Namespace) -> int:
    """Replay each file and print the accounts; files that are no recordings are complained of."""
    from efrit_budget.budget.prices import million_prices
    from efrit_budget.errors import EfritError
    from efrit_budget.replay.files import open_recording
    from efrit_budget.replay.plot import plot
    from efrit_budget.replay.report import as_json, table

    if million_prices(arguments.model) is None:
        complain(f"the price list does not have {arguments.model}; try claude-sonnet-5-5")
        return 1
    replays = []
    for path in arguments.files:
        try:
            replays.append(_replay(open_recording(path), arguments))
        except EfritError as error:
            complain(error.message)
    if not replays:
        return 1
    if arguments.plot is not None:
        with replacing(arguments.plot) as stream:
            stream.write(plot(replays, replays[0].limit))
    if arguments.as_json:
        print_json(as_json(replays), compact=True)
    else:
        print_table(table(replays))
    return 0 if len(replays) == len(arguments.files) else 1


def _replay(recording: "Recording", arguments: argparse.Namespace) -> "Replay":
    """Replay a recording as the arguments say, and show on a terminal how far it is."""
    from efrit_budget.replay.replaying import Clearing

    clearing = Clearing(
        arguments.clear_at,
        arguments.clear_keep,
        arguments.clear_at_least,
        arguments.clear_inputs,
    )
    limits = {} if arguments.total is None else {"total": arguments.total}
    progress = _progress(recording.name)
    return replay_apart(recording, arguments.model, limits, clearing, progress)


def replay_apart(
    recording: "Recording",
    model: str,
    limits: Mapping[str, float],
    clearing: "Clearing",
    progress: Callable[[int, int], None],
) -> "Replay":
    """Replay a recording in a database of its own, which is deleted afterwards."""
    from efrit_budget.app import open_application
    from efrit_budget.budget.models import model_named
    from efrit_budget.replay.ours import Clock, Means
    from efrit_budget.replay.replaying import replay
    from efrit_budget.settings.load import load

    with tempfile.TemporaryDirectory(prefix="efrit-replay-") as folder:
        places = {"storage.database": f"{folder}/replay.db"}
        clock = Clock()
        application = open_application(
            load(overrides=places, override_origin="command line"), clock
        )
        try:
            root = Path(folder, "project")
            root.mkdir()
            means = Means(application.call, clock, str(root), model_named(model), dict(limits))
            return replay(means, recording, clearing, progress)
        finally:
            application.close()


def _progress(name: str) -> Callable[[int, int], None]:
    """Return a function that shows on a terminal how many turns were replayed."""

    def show(done: int, total: int) -> None:
        if not sys.stderr.isatty():
            return
        end = "\n" if done == total else ""
        print(f"\r{name}: {done:,} of {total:,} turns", end=end, file=sys.stderr, flush=True)

    return show
