"""Recorded and drawn sessions, replayed: price and needed facts beside other ways to make room.

The recordings lie in the folder that `EFRIT_TRAJECTORIES` names; the others are drawn from their
statistics.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace as changed
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter
from unittest.mock import patch

from efrit_budget.budget.prices import dollars
from efrit_budget.cli.replay import replay_apart
from efrit_budget.conversation import begin
from efrit_budget.replay.account import Account
from efrit_budget.replay.files import open_recording
from efrit_budget.replay.recording import Recording
from efrit_budget.replay.replaying import Clearing, Replay
from tests.benchmarks.drawn_sessions import drawn
from tests.benchmarks.recorded_usage import FOLDER
from tests.benchmarks.session_repository import repository
from tests.benchmarks.table import Row

TENTH, TWENTIETH = "claude-opus-4-6", "claude-opus-5-5"
"""Models whose cache reads cost 0.1 and 0.05 of other input."""
LONG = 100_000
"""The tokens that a long session passes without management."""
SEEDS = range(10)
Source = Path | int
"""The file of a recorded session, or the seed of a drawn one."""
EVERY, PAUSE, STEP = 20, 600.0, 20.0
"""The turns between two pauses, the seconds of a pause, and those of a turn."""


def run() -> Iterator[Row]:
    """Yield the rows of the table."""
    folder = os.environ.get(FOLDER)
    recorded: list[Source] = [*sorted(Path(folder).glob("*.jsonl.gz"))] if folder else []
    if not recorded:
        yield Row("recorded sessions", "none: set EFRIT_TRAJECTORIES to their folder")
    repository()
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as workers:
        for kind, sources in (("recorded", recorded), ("drawn", list(SEEDS))):
            if sources:
                yield from _rows(workers, kind, sources)


def _rows(workers: ProcessPoolExecutor, kind: str, sources: Sequence[Source]) -> Iterator[Row]:
    """Yield the rows for sessions of a kind."""
    slowest = 0.0
    for model, bar in ((TENTH, 0.40), (TWENTIETH, 0.48)):
        found = list(workers.map(measured, sources, [model] * len(sources)))
        replays = [one for one, _ in found]
        yield from _price_rows(f"{kind}, {model}", bar, replays)
        yield from _fact_rows(f"{kind}, {model}", replays)
        slowest = max(slowest, *(seconds / len(one.played) for one, seconds in found))
    yield Row(f"{kind}: slowest replay, all ways together", f"{slowest * 1000:.1f} ms a turn")
    with_cold = list(workers.map(paused, sources))
    without = list(workers.map(paused_without_cold, sources))
    yield _row(
        f"{kind}: a pause of 10 minutes every {EVERY} turns: price beside that without `cold`",
        mean([one / other for one, other in zip(with_cold, without, strict=True)]),
        0.75,
    )


def opened(source: Source) -> Recording:
    """Return the recording in a file, or the session that is drawn with a seed."""
    return open_recording(source) if isinstance(source, Path) else drawn(source)


def mean(values: Sequence[float]) -> float:
    """Return the mean of the values."""
    return sum(values) / max(1, len(values))


def measured(
    source: Source, model: str, limits: dict[str, float] | None = None
) -> tuple[Replay, float]:
    """Return a replayed recording, and the seconds that it took."""
    started = perf_counter()
    recording = opened(source)
    one = replay_apart(recording, model, limits or {}, Clearing(), lambda *_: None)
    return one, perf_counter() - started


def prompts(account: Account) -> float:
    """Return the price of the prompts alone."""
    model = account.till.model.name
    replies = sum(
        dollars(model, {"output_tokens": charge.output}) or 0.0 for charge in account.till.charges
    )
    return account.dollars - replies


def _by_name(one: Replay) -> dict[str, Account]:
    return {account.name: account for account in one.accounts}


def price_ratios(replays: Sequence[Replay], name: str, *, long: bool = False) -> list[float]:
    """Return our price of prompts beside that of another way, for all or the long sessions."""
    found = [_by_name(one) for one in replays]
    return [
        prompts(one["efrit"]) / prompts(one[name])
        for one in found
        if not long or one["unmanaged"].largest > LONG
    ]


def _row(name: str, value: float, bar: float, shown: str = "{:.3f}", *, least: bool = False) -> Row:
    holds = value >= bar if least else value <= bar
    return Row(name, shown.format(value), bar=f"{'≥' if least else '≤'} {bar:g}", holds=holds)


def _price_rows(model: str, bar: float, replays: Sequence[Replay]) -> Iterator[Row]:
    long = price_ratios(replays, "unmanaged", long=True)
    largest = max(one.accounts[0].largest / one.limit for one in replays)
    yield _row(f"{model}: largest prompt beside the limit, estimated", largest, 1.01)
    yield _row(
        f"… price of the prompts beside unmanaged, {len(long)} long sessions", mean(long), bar
    )
    yield _row("… beside the API's clearing", mean(price_ratios(replays, "API clearing")), 0.85)
    yield _row("… the same, worst session", max(price_ratios(replays, "API clearing")), 1.0)
    yield _row("… beside the clairvoyant", mean(price_ratios(replays, "clairvoyant")), 1.15)
    yield Row("… the same, nearest session", f"{min(price_ratios(replays, 'clairvoyant')):.3f}")
    for name in ("summary", "drop oldest"):
        yield Row(f"… beside {name}", f"{mean(price_ratios(replays, name)):.3f}")


def _fact_rows(model: str, replays: Sequence[Replay]) -> Iterator[Row]:
    for at, name in enumerate(account.name for account in replays[0].accounts):
        shares = [_share(one.accounts[at]) for one in replays]
        row = f"{model}: needed facts in view, {name}"
        if at:
            yield Row(row, f"{mean(shares):.1%}", f"worst {min(shares):.1%}")
            continue
        yield _row(row, mean(shares), 0.99, "{:.1%}", least=True)
        yield _row("… the same, worst session", min(shares), 0.95, "{:.1%}", least=True)
    ours = [one.accounts[0] for one in replays]
    repeats, seen = sum(one.repeats for one in ours), sum(one.repeats_in_view for one in ours)
    yield _row(f"… {repeats} repeated calls, in view", seen / repeats, 0.95, "{:.1%}", least=True)


def fact_shares(replays: Sequence[Replay]) -> list[float]:
    """Return the share of the needed facts that each session had in view."""
    return [_share(one.accounts[0]) for one in replays]


def _share(account: Account) -> float:
    return account.facts_in_view / account.facts if account.facts else 1.0


def paused(source: Source) -> float:
    """Return our price of a session's prompts with a pause after every so many turns."""
    recording, moment = opened(source), 0.0
    turns = []
    for number, turn in enumerate(recording.turns):
        moment += PAUSE if number % EVERY == EVERY - 1 else STEP
        turns.append(changed(turn, began=moment, ended=moment))
    recording = changed(recording, turns=turns)
    one = replay_apart(recording, TENTH, {}, Clearing(), lambda *_: None)
    return prompts(one.accounts[0])


def paused_without_cold(source: Source) -> float:
    """Return the same price where an expired cache is no reason for a rewrite."""
    with patch.object(begin, "CACHE_SECONDS", float("inf")):
        return paused(source)
