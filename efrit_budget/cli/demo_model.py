"""`efrit-budget demo-model`: a scripted model behind an endpoint on loopback."""

import argparse
import signal
import sys
import threading
from pathlib import Path

from efrit_budget.cli.arguments import number_in

NAME = "demo-model"
HELP = "Run a scripted model: an endpoint on loopback that plays a scenario."
EXAMPLES = """  efrit-budget demo-model --port 8080 --no-key
  efrit-budget demo-model --no-key --window 8192 --strict alternation --strict short-ids
  efrit-budget demo-model --scenario long --record requests.jsonl
  efrit-budget demo-model --scenario my-scenario.toml --factor 1.1
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags of the endpoint."""
    add = parser.add_argument
    add("--port", type=_port, default=0, metavar="N", help="where to listen; 0 finds a free one")
    add("--scenario", default="tour", metavar="FILE|NAME", help="its replies; default: tour")
    add(
        "--factor",
        type=number_in(float, 0.1, 10, "a factor is a number from 0.1 to 10"),
        default=1.3,
        metavar="F",
        help="real tokens for one estimated",
    )
    add("--record", type=Path, metavar="FILE", help="add each request to this file, as JSON")
    add("--key-file", type=Path, metavar="FILE", help="keep the key that signs thinking here")
    _add_server_flags(parser)
    add("--no-key", action="store_true", help="ask for no API key")
    add("--until-eof", action="store_true", help="end also when stdin closes")
    add("--quiet", action="store_true", help="do not print the scenario on stderr")


def _add_server_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags that make the endpoint resemble one server or another."""
    from efrit_budget.demo.strict import STRICT

    add = parser.add_argument
    add(
        "--model",
        action="append",
        default=[],
        metavar="NAME",
        help="serve a model of this name too; repeatable",
    )
    add(
        "--window",
        type=number_in(int, 100, 1_000_000_000, "a window is a number of tokens, at least 100"),
        metavar="N",
        help="limit the window of every model; GET /v1/models then shows it",
    )
    add(
        "--reasoning",
        choices=("reasoning_content", "reasoning"),
        default="reasoning_content",
        help="the field of Chat Completions that has its thinking",
    )
    add(
        "--strict",
        action="append",
        default=[],
        choices=STRICT,
        metavar="NAME",
        help=f"be as strict as some servers are; repeatable: {', '.join(STRICT)}",
    )


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65_535:
        raise argparse.ArgumentTypeError("a port is a number from 0 to 65535")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    """Serve the scripted model until a signal comes or, with `--until-eof`, stdin closes."""
    from efrit_budget.demo.binding import kept_key
    from efrit_budget.demo.endpoint import EndpointServer
    from efrit_budget.demo.record import Recorder
    from efrit_budget.demo.scenario import load
    from efrit_budget.demo.service import Options, Service

    scenario = load(arguments.scenario)
    options = Options(
        scenario=scenario,
        key=kept_key(arguments.key_file),
        factor=arguments.factor,
        needs_key=not arguments.no_key,
        reasoning=arguments.reasoning,
        models=tuple(arguments.model),
        window=arguments.window,
        strict=frozenset(arguments.strict),
    )
    recorder = Recorder(arguments.record)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with EndpointServer(arguments.port, Service(options), recorder) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        print(server.url, flush=True)
        if not arguments.quiet:
            print(f"playing: {scenario.title or arguments.scenario}", file=sys.stderr)
        if arguments.until_eof:
            threading.Thread(target=_end_at_eof, args=(stop,), daemon=True).start()
        stop.wait()
        server.shutdown()
    recorder.close()
    return 0


def _end_at_eof(ended: threading.Event) -> None:
    while sys.stdin.buffer.read(4096):
        pass
    ended.set()
