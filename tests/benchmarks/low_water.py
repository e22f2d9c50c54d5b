"""Plots the effect of the low-water mark: `python -m tests.benchmarks.low_water`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.benchmarks.bench_session import mean, pool, sweep, sweep_rows
from tests.benchmarks.panels import Panel, picture
from tests.benchmarks.session_ours import Found
from tests.benchmarks.session_repository import repository
from tests.benchmarks.table import markdown

PLOT = Path(__file__).parents[2] / "docs" / "low-water.svg"
PANELS: tuple[tuple[str, Callable[[Found], float], str], ...] = (
    ("epochs in 300 turns", lambda found: found.epochs, "{:.0f}"),
    ("% of prompt tokens from cache", lambda found: 100 * found.meter.share, "{:.0f}"),
    ("cost, million input tokens", lambda found: found.meter.cost / 1e6, "{:.2f}"),
    ("results in full in view", lambda found: found.mean_in_view, "{:.1f}"),
)


def drawn(swept: dict[float, list[Found]]) -> str:
    """Return the whole plot as SVG."""
    return picture(
        [
            Panel(
                title,
                [(mark, mean(list(map(value, swept[mark])))) for mark in swept],
                "{:.0%}",
                form,
            )
            for title, value, form in PANELS
        ]
    )


def main() -> None:
    """Simulate the sessions, print the figures and write the plot."""
    repository()
    with pool() as workers:
        swept = sweep(workers)
    print(markdown(sweep_rows(swept)))
    PLOT.parent.mkdir(exist_ok=True)
    PLOT.write_text(drawn(swept), encoding="utf-8")


if __name__ == "__main__":
    main()
