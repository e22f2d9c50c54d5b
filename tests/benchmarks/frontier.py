"""Plots price against needed facts: `python -m tests.benchmarks.frontier`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from tests.benchmarks.bench_replay import TENTH, fact_shares, mean, measured, price_ratios
from tests.benchmarks.panels import Panel, picture
from tests.benchmarks.recorded_usage import FOLDER

PLOT = Path(__file__).parents[2] / "docs" / "frontier.svg"
SETTINGS: Mapping[str, Sequence[float]] = {
    "index_share": (0, 0.1, 0.2, 0.25, 0.4),
    "low_water": (0.05, 0.1, 0.2, 0.4, 0.8),
    "patience": (0.5, 1.5, 3, 5, 10),
}
"""The values of each setting that are tried, while the others have their defaults."""


def panels(workers: ProcessPoolExecutor, paths: Sequence[Path]) -> Iterator[Panel]:
    """Yield two curves for each setting: the price beside unmanaged, and the needed facts."""
    for setting, values in SETTINGS.items():
        prices, facts = [], []
        for value in values:
            limits = {setting: value}
            found = workers.map(measured, paths, [TENTH] * len(paths), [limits] * len(paths))
            replays = [one for one, _ in found]
            prices.append((value, mean(price_ratios(replays, "unmanaged", long=True))))
            facts.append((value, 100 * mean(fact_shares(replays))))
            print(f"{setting} {value:g}: price {prices[-1][1]:.3f}, facts {facts[-1][1]:.1f}%")
        yield Panel(f"{setting}: price", prices, "{:g}", "{:.2f}")
        yield Panel(f"{setting}: % of facts", facts, "{:g}", "{:.1f}")


def main() -> None:
    """Replay the sessions, print the figures and write the plot."""
    paths = sorted(Path(os.environ[FOLDER]).glob("*.jsonl.gz"))
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as workers:
        PLOT.write_text(picture(list(panels(workers, paths))), encoding="utf-8")


if __name__ == "__main__":
    main()
