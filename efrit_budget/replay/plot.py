"""Draw the tokens of each prompt over the turns of replayed sessions, as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from efrit_budget.replay.account import Account
from efrit_budget.replay.replaying import Replay

WIDTH, HEIGHT, MARGIN, TITLE = 720, 220, 50, 26
COLOURS = ("#2a6fbb", "#999999", "#d08c28", "#6a9f58", "#b05a7a", "#555555")
STEPS = 4
FONT = 'font-family="sans-serif" font-size="11"'
LIMIT = 'stroke="#cc3333" stroke-dasharray="4 3"'


def plot(replays: Sequence[Replay], limit: int) -> str:
    """Return a picture with a panel for each session and a line for each way to make room."""
    panels = [_panel(replay, limit, at * HEIGHT) for at, replay in enumerate(replays)]
    size = f'width="{WIDTH}" height="{HEIGHT * len(replays)}"'
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} {FONT}>',
            '<rect width="100%" height="100%" fill="white"/>',
            *panels,
            "</svg>\n",
        )
    )


def _panel(replay: Replay, limit: int, top: int) -> str:
    most = max(limit, *(account.largest for account in replay.accounts))
    wide, tall = WIDTH - 2 * MARGIN, HEIGHT - MARGIN - TITLE
    bottom = top + TITLE + tall

    def x(turn: float) -> float:
        return MARGIN + wide * turn / max(1, len(replay.played) - 1)

    def y(tokens: float) -> float:
        return bottom - tall * tokens / most

    name = escape(replay.recording.name)
    parts = [
        f'<text x="{MARGIN}" y="{top + 16}" font-weight="bold">{name}</text>',
        f'<path d="M{MARGIN} {y(limit):.1f} H{MARGIN + wide}" {LIMIT}/>',
    ]
    for step in range(STEPS + 1):
        tokens = most * step / STEPS
        parts.append(
            f'<path d="M{MARGIN} {y(tokens):.1f} H{MARGIN + wide}" stroke="#eeeeee"/>'
            f'<text x="{MARGIN - 5}" y="{y(tokens) + 4:.1f}" text-anchor="end">'
            f"{tokens / 1000:.0f}k</text>"
        )
    for at, account in enumerate(replay.accounts):
        points = " ".join(
            f"{x(turn):.1f},{y(charge.prompt):.1f}"
            for turn, charge in enumerate(account.till.charges)
        )
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{COLOURS[at % len(COLOURS)]}" '
            f'stroke-width="{2 if at == 0 else 1}"/>{_label(account, at, top)}'
        )
    return "\n".join(parts)


def _label(account: Account, at: int, top: int) -> str:
    left = WIDTH - MARGIN - 430 + 90 * at
    return (
        f'<text x="{left}" y="{top + 16}" fill="{COLOURS[at % len(COLOURS)]}">'
        f"{escape(account.name)}</text>"
    )
