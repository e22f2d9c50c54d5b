"""A session of 300 turns over a repository of 10,000 files, against other ways to fit a window."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from tests.benchmarks.session_ours import Found, simulate
from tests.benchmarks.session_repository import repository
from tests.benchmarks.session_script import TURNS, script
from tests.benchmarks.session_setting import (
    LOW_WATERS,
    OLDER_MODEL,
    PROMPT_LIMIT,
    REAL_LIMIT,
    SEEDS,
    Case,
)
from tests.benchmarks.session_strategies import (
    ApiClearing,
    CompactEveryTurn,
    Compared,
    DropOldest,
    Strategy,
    compare,
)
from tests.benchmarks.table import Row

OVERFLOW = 200_000
MOST_EPOCHS, LEAST_SHARE = 50, 0.80
CASES: dict[str, Callable[[int], Case]] = {
    "table 1.3, truth 1.3": lambda seed: Case(seed, recall_all=True, live=True),
    "table 1.0, truth 1.0": lambda seed: Case(seed, OLDER_MODEL, 1.0, live=True),
    "table 1.0, truth 1.3": lambda seed: Case(seed, OLDER_MODEL, 1.3, live=True),
}
DEFAULT_CASE = "table 1.3, truth 1.3"
HALF, CLEARING = 0.5, 0.8
VIEW = 1.3
STRATEGIES: tuple[tuple[Strategy, float | None], ...] = (
    (Strategy(), None),
    (CompactEveryTurn("compact every turn, tiers to their caps", 40_000), HALF),
    (CompactEveryTurn("compact every turn, to our own mark", 18_000), HALF),
    (DropOldest(), HALF),
    (ApiClearing("the API's clearing (keep 3)", 10_000, thinking=False), CLEARING),
    (ApiClearing("the same, and thinking with it", 10_000, thinking=True), None),
)
"""The strategies, each with the share of its cost that ours may reach."""


def run() -> Iterator[Row]:
    """Yield the rows of the table."""
    repository()
    with pool() as workers:
        list(workers.map(script, SEEDS))
        cases = [make(seed) for make in CASES.values() for seed in SEEDS]
        found = list(workers.map(simulate, cases))
        compared = list(
            workers.map(
                compare,
                [Case(seed) for strategy, _ in STRATEGIES for seed in SEEDS],
                [strategy for strategy, _ in STRATEGIES for _ in SEEDS],
            )
        )
        swept = sweep(workers)
    count = len(SEEDS)
    by_case = {name: found[index * count : (index + 1) * count] for index, name in enumerate(CASES)}
    ours = by_case[DEFAULT_CASE]
    yield _script_row()
    for name, group in by_case.items():
        yield from _limit_rows(name, group)
    yield _recall_row(ours)
    for index, (strategy, bar) in enumerate(STRATEGIES):
        theirs = compared[index * count : (index + 1) * count]
        yield from _strategy_rows(strategy.name, ours, theirs, bar)
    yield from sweep_rows(swept)


def pool() -> ProcessPoolExecutor:
    """Return a pool with a worker for each core, each with its own tokenizer."""
    return ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn"))


def sweep(workers: ProcessPoolExecutor) -> dict[float, list[Found]]:
    """Simulate the default case at each low-water mark."""
    cases = [Case(seed, low_water=mark) for mark in LOW_WATERS for seed in SEEDS]
    found = list(workers.map(simulate, cases))
    count = len(SEEDS)
    return {
        mark: found[index * count : (index + 1) * count] for index, mark in enumerate(LOW_WATERS)
    }


def mean(values: Sequence[float]) -> float:
    """Return the mean of the values."""
    return sum(values) / len(values)


def spread(values: Sequence[float], shown: Callable[[float], str] = "{:,.0f}".format) -> str:
    """Return the minimum and the maximum as text, or one number if they are equal."""
    low, high = shown(min(values)), shown(max(values))
    return low if low == high else f"{low} to {high}"


def _script_row() -> Row:
    played = [script(seed) for seed in SEEDS]
    tokens = mean([one.mean_tokens() for one in played])
    thinking = mean([step.thinking for one in played for step in one.steps])
    return Row(
        f"script: {TURNS} turns, {len(SEEDS)} seeds",
        f"{spread([len(one.actions) for one in played])} results",
        f"{tokens:,.0f} tokens each",
        f"{thinking:,.0f} of thinking a turn",
    )


def _limit_rows(name: str, group: Sequence[Found]) -> Iterator[Row]:
    most = max(one.most_by_our_count for one in group)
    yield Row(
        f"{name}: largest prompt by our count",
        f"{most:,}",
        bar=f"≤ {PROMPT_LIMIT:,}",
        holds=most <= PROMPT_LIMIT,
    )
    real = [max(one.meter.prompts) for one in group]
    yield Row(
        f"{name}: largest prompt in real tokens",
        f"{max(real):,}",
        f"factor found {spread([one.factor for one in group], '{:.2f}'.format)}",
        bar=f"≤ {REAL_LIMIT:,}",
        holds=max(real) <= REAL_LIMIT,
    )
    breaches = [problem for one in group for problem in one.problems]
    yield Row(
        f"{name}: requests that do not extend, or that the API would refuse",
        f"{len(breaches)}" + "".join(f"; {problem}" for problem in breaches[:3]),
        f"of {sum(len(one.meter.prompts) for one in group):,}",
        bar="0",
        holds=not breaches,
    )
    epochs = [one.epochs for one in group]
    holds = max(epochs) <= MOST_EPOCHS
    yield Row(f"{name}: epochs", spread(epochs), bar=f"≤ {MOST_EPOCHS}", holds=holds)
    shares = [one.meter.share for one in group]
    yield Row(
        f"{name}: read from cache",
        spread(shares, "{:.1%}".format),
        bar=f"≥ {LEAST_SHARE:.0%}",
        holds=min(shares) >= LEAST_SHARE,
    )


def _recall_row(group: Sequence[Found]) -> Row:
    results = sum(one.results for one in group)
    missing = sum(one.not_recalled for one in group)
    return Row(
        "results that come back identical at the end, by recall_result and from the store",
        f"{results - missing:,}",
        f"{results:,}",
        bar="all",
        holds=not missing,
    )


def _strategy_rows(
    name: str, ours: Sequence[Found], theirs: Sequence[Compared], bar: float | None
) -> Iterator[Row]:
    ratios = [one.meter.cost / other.meter.cost for one, other in zip(ours, theirs, strict=True)]
    yield Row(
        f"cost, beside {name}",
        f"{mean([one.meter.cost for one in ours]) / 1e6:.2f} M",
        f"{mean([one.meter.cost for one in theirs]) / 1e6:.2f} M",
        spread(ratios, "{:.2f}".format),
        f"≤ {bar}" if bar else "",
        max(ratios) <= bar if bar else None,
    )
    views = [one.mean_in_view / other.mean_in_view for one, other in zip(ours, theirs, strict=True)]
    wanted = VIEW if bar == CLEARING else None
    yield Row(
        "… results in view",
        f"{mean([one.mean_in_view for one in ours]):.1f}",
        f"{mean([one.mean_in_view for one in theirs]):.1f}",
        spread(views, "{:.2f}".format),
        f"≥ {wanted}" if wanted else "",
        min(views) >= wanted if wanted else None,
    )
    yield from _forgetting_rows(ours, theirs)


def _forgetting_rows(ours: Sequence[Found], theirs: Sequence[Compared]) -> Iterator[Row]:
    yield Row(
        "… wanted again and gone: recalled, theirs asked for anew",
        f"{sum(one.recalled for one in ours)} of {sum(one.returns for one in ours)}",
        f"{sum(one.forgotten for one in theirs)} of {sum(one.returns for one in theirs)}",
    )
    yield Row(
        "… cache share, rewrites, largest prompt",
        f"{mean([one.meter.share for one in ours]):.0%}, "
        f"{mean([one.epochs - 1 for one in ours]):.0f}, "
        f"{max(max(one.meter.prompts) for one in ours):,}",
        f"{mean([one.meter.share for one in theirs]):.0%}, "
        f"{mean([one.rewrites for one in theirs]):.0f}, "
        f"{max(max(one.meter.prompts) for one in theirs):,}",
    )
    turns = [turn for one in theirs if (turn := one.passes(OVERFLOW)) is not None]
    if turns:
        yield Row(f"… passes {OVERFLOW:,} tokens at turn", "never", spread(turns))


def sweep_rows(swept: dict[float, list[Found]]) -> Iterator[Row]:
    """Yield a row for each low-water mark."""
    least = min(mean([one.meter.cost for one in group]) for group in swept.values())
    for mark, group in swept.items():
        cost = mean([one.meter.cost for one in group])
        yield Row(
            f"low-water mark {mark:.0%}",
            f"{spread([one.epochs for one in group])} epochs, "
            f"{mean([one.meter.share for one in group]):.1%} from cache",
            f"{mean([one.mean_in_view for one in group]):.1f} results in view, "
            f"{sum(one.recalled for one in group)} recalls",
            f"cost {cost / least:.2f}",
        )
