"""Plots the effect of the low-water mark: `python -m tests.benchmarks.low_water`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from tests.benchmarks.bench_session import mean, pool, sweep, sweep_rows
from tests.benchmarks.session_ours import Found
from tests.benchmarks.session_repository import repository
from tests.benchmarks.table import markdown

PLOT = Path(__file__).parents[2] / "docs" / "low-water.svg"
WIDTH, HEIGHT, MARGIN = 250, 170, 40
PANELS: tuple[tuple[str, Callable[[Found], float], str], ...] = (
    ("epochs in 300 turns", lambda found: found.epochs, "{:.0f}"),
    ("% of prompt tokens from cache", lambda found: 100 * found.meter.share, "{:.0f}"),
    ("cost, million input tokens", lambda found: found.meter.cost / 1e6, "{:.2f}"),
    ("results in full in view", lambda found: found.mean_in_view, "{:.1f}"),
)
FONT = 'font-size="11"'


def panel(at: int, title: str, marks: Sequence[float], values: Sequence[float], shown: str) -> str:
    """Return one curve with its figures, as SVG."""
    low, high = 0.0, max(values) * 1.15
    left, bottom = at * WIDTH + MARGIN, HEIGHT - MARGIN
    wide, tall = WIDTH - 1.5 * MARGIN, HEIGHT - 2 * MARGIN
    points = [
        (left + wide * mark / 0.9, bottom - tall * (value - low) / (high - low))
        for mark, value in zip(marks, values, strict=True)
    ]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    parts = [
        f'<text x="{left}" y="22" font-weight="bold">{title}</text>',
        f'<path d="M{left} {MARGIN} V{bottom} H{left + wide:.0f}" fill="none" stroke="#888"/>',
        f'<polyline points="{line}" fill="none" stroke="#2a6fbb" stroke-width="2"/>',
    ]
    for (x, y), mark, value in zip(points, marks, values, strict=True):
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="#2a6fbb"/>')
        parts.append(_text(x, y - 7, shown.format(value)))
        parts.append(_text(x, bottom + 15, f"{mark:.0%}"))
    return "\n".join(parts)


def _text(x: float, y: float, words: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle" font-size="10">{words}</text>'


def drawn(swept: dict[float, list[Found]]) -> str:
    """Return the whole plot as SVG."""
    marks = list(swept)
    panels = [
        panel(at, title, marks, [mean([value(one) for one in swept[mark]]) for mark in marks], form)
        for at, (title, value, form) in enumerate(PANELS)
    ]
    size = f'width="{WIDTH * len(PANELS)}" height="{HEIGHT}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" {FONT}>',
            '<rect width="100%" height="100%" fill="white"/>',
            *panels,
            "</svg>\n",
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
