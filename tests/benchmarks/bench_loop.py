"""The loop: what a session costs the Emacs it runs in, and what its tools cost the model."""

from __future__ import annotations

import json
import os
import statistics
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

from efrit_budget.demo.scenario import BUILT_IN
from tests.benchmarks.played import ROOT, Play, play
from tests.benchmarks.session_repository import repository
from tests.benchmarks.table import Row
from tests.benchmarks.tokenizers_real import count
from tests.demo.running import endpoint
from tests.emacs.terminal import settings

SCRIPT = ROOT / "tests" / "benchmarks" / "elisp" / "bench-loop.el"
ROUNDS = 5
BESIDE = {
    "buffer": "the same while 5 MB of the project are being modified in a buffer",
    "budget": "the same with the budget in sight",
}
"""The activities measured beside a session, each with the words that the report uses."""
LONG = BUILT_IN / "long.toml"
SMALL_TOOL = """
[[reply]]
repeat = 20
text = "Looking at it once more."
tool = [ { name = "file_info", input = { paths = ["README.md"], max_tokens = "{n+200}" } } ]
"""
ONE_REPLY = """
[[reply]]
text = "Looking at it."
"""


def run() -> Iterator[Row]:
    """Yield every row of the table."""
    long = [_played(LONG.read_text(encoding="utf-8")) for _ in range(ROUNDS)]
    short, lines = _played(SMALL_TOOL)
    yield _tokens("system prompt and all {} tool schemas, in real tokens", short, 5_000)
    small, _ = _played(ONE_REPLY, window=8_192)
    yield _tokens("the same {} tools for a window of 8,192 tokens", small, 1_800)
    worst = [measured["late"] for measured, _ in long]
    yield _most(
        f"a 100 ms timer is late, the worst of 60 turns, median of {ROUNDS}",
        statistics.median(worst),
        150,
    )
    for beside, what in BESIDE.items():
        late = [_played(LONG.read_text(encoding="utf-8"), beside)[0]["late"] for _ in range(ROUNDS)]
        yield _most(f"{what}, median of {ROUNDS}", statistics.median(late), 150)
    yield _most("first word in the view after it was sent, median", _word(short, lines), 20)
    yield _most("1.2 MB of mixed text encoded", short["encoding"], 150)
    tool = statistics.median(short["took"])
    yield _most(
        f"from a reply's end to the next request, less the {tool:.1f} ms of a tool",
        _gap(lines) - tool,
        30,
    )


def _most(what: str, found: float, bar: float) -> Row:
    return Row(what, f"{found:.1f} ms", bar=f"≤ {bar} ms", holds=found <= bar)


def _tokens(what: str, measured: dict[str, Any], bar: int) -> Row:
    system = "\n".join(block["text"] for block in json.loads(measured["system"]))
    tools = json.loads(measured["tools"])
    for tool in tools:
        tool.pop("cache_control", None)  # the API's, not the model's
    sent = [json.dumps(tool, ensure_ascii=False, separators=(",", ":")) for tool in tools]
    texts = [system, *sent]
    counts = count("claude", texts)
    total = sum(counts)
    return Row(
        what.format(len(tools)),
        f"{total:,}",
        reference=f"prompt {counts[0]:,}, {len(system):,} characters",
        bar=f"≤ {bar:,}",
        holds=total <= bar,
    )


def _word(measured: dict[str, Any], lines: list[Any]) -> float:
    """Return the milliseconds from sending the first piece until the view shows it."""
    sent = [line["times"]["first"] for line in lines if line["times"]["first"]]
    pairs = zip(sent, measured["words"], strict=False)
    return float(statistics.median((seen - went) * 1000 for went, seen in pairs))


def _gap(lines: list[Any]) -> float:
    """Return the median time in milliseconds that the endpoint was idle between turns."""
    times = [line["times"] for line in lines]
    gaps = [after["received"] - before["ended"] for before, after in pairwise(times)]
    return float(statistics.median(gaps) * 1000)


def _played(
    scenario: str, beside: str = "", window: int | None = None
) -> tuple[dict[str, Any], list[Any]]:
    """Run a session in an Emacs in a terminal; return its measurements and the requests.

    `window` are the tokens that the model can hold, if other than usual.
    """
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.dict(os.environ, EFRIT_BUDGET_HOME=str(Path(folder, "home"))),
        endpoint(scenario, Path(folder)) as running,
    ):
        output = Path(folder, "measured.json")
        play(
            Play(SCRIPT, "efrit-bench-loop-run", repository(), output),
            settings(running.server.url, window),
            EFRIT_BENCH_BESIDE=beside,
        )
        measured = json.loads(output.read_text(encoding="utf-8"))
        if measured["state"] != "idle":
            raise RuntimeError(f"the session ended as {measured['state']}: {measured['problem']}")
        return measured, running.lines()
