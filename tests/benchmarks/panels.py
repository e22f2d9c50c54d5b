"""Draws curves side by side as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT, MARGIN = 250, 170, 40
FONT = 'font-family="sans-serif" font-size="11"'


@dataclass(frozen=True)
class Panel:
    """A curve: a title, its points, and how their two figures are written."""

    title: str
    points: Sequence[tuple[float, float]]
    mark: str
    value: str


def picture(panels: Sequence[Panel]) -> str:
    """Return panels beside each other."""
    size = f'width="{WIDTH * len(panels)}" height="{HEIGHT}"'
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} {FONT}>',
            '<rect width="100%" height="100%" fill="white"/>',
            *(_drawn(panel, number * WIDTH + MARGIN) for number, panel in enumerate(panels)),
            "</svg>\n",
        )
    )


def _drawn(panel: Panel, left: int) -> str:
    bottom, wide, tall = HEIGHT - MARGIN, WIDTH - 1.5 * MARGIN, HEIGHT - 2 * MARGIN
    furthest = max(mark for mark, _ in panel.points)
    highest = max(value for _, value in panel.points) * 1.15
    points = [
        (left + wide * mark / furthest, bottom - tall * value / highest)
        for mark, value in panel.points
    ]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    parts = [
        f'<text x="{left}" y="22" font-weight="bold">{panel.title}</text>',
        f'<path d="M{left} {MARGIN} V{bottom} H{left + wide:.0f}" fill="none" stroke="#888"/>',
        f'<polyline points="{line}" fill="none" stroke="#2a6fbb" stroke-width="2"/>',
    ]
    for (x, y), (mark, value) in zip(points, panel.points, strict=True):
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="#2a6fbb"/>')
        parts.append(_text(x, y - 7, panel.value.format(value)))
        parts.append(_text(x, bottom + 15, panel.mark.format(mark)))
    return "\n".join(parts)


def _text(x: float, y: float, words: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle" font-size="10">{words}</text>'
