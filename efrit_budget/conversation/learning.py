"""What a reply's usage block teaches: of the model, and of what was new in its prompt."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass, replace

from efrit_budget.budget.calibration import ABSURD, true_prompt_size
from efrit_budget.conversation import calls, segments, turns, windows
from efrit_budget.conversation.bounds import Bounds
from efrit_budget.conversation.windows import Window
from efrit_budget.errors import Json

FAR = 3.0
"""Tokens for one of our estimate, above which it is the text that was misjudged, not the model."""
WORTH_BELIEVING = 1_000
"""Tokens below which it makes no difference to a session."""


@dataclass(frozen=True)
class Growth:
    """What came into a prompt since the last one of the same epoch, or all of it."""

    first: int
    """The first turn whose results were new."""
    turn: int
    raw: int
    exact: int
    tokens: int
    """What the API counted for it."""
    results: int
    is_whole: bool


def learn(
    connection: sqlite3.Connection, window: Window, turn: sqlite3.Row, usage: Json, bounds: Bounds
) -> tuple[Window, Bounds]:
    """Calibrate the model; or, where new text was far above its estimate, charge that text so.

    A prompt can be no larger than the model's window, so no usage block is believed beyond it.
    """
    size = true_prompt_size(usage)
    if size is None:
        return window, bounds
    size = min(size, bounds.model.window)
    grown = _growth(connection, turn, size)
    known, frames = bounds.calibration, grown.results * bounds.calibration.frame
    missed = grown.tokens - grown.exact - known.tokens(grown.raw, grown.results)
    if missed >= WORTH_BELIEVING and grown.tokens - grown.exact - frames > FAR * grown.raw:
        return _believe(connection, window, grown, missed / known.factor), bounds
    results = (
        grown.results
        if grown.is_whole
        else calls.count_in_prompt(connection, turn["session_id"], 0, turn["number"])
    )
    learnt = known.after(turn["raw"], turn["exact"], size, results)
    if not grown.is_whole:
        learnt = learnt.after_results(grown.raw, grown.tokens - grown.exact, grown.results)
    windows.save_calibration(connection, bounds.model.name, learnt)
    return window, replace(bounds, calibration=learnt)


def _growth(connection: sqlite3.Connection, turn: sqlite3.Row, size: int) -> Growth:
    session_id, number = turn["session_id"], turn["number"]
    before = turns.before(connection, turn)
    counted = None if before is None else _counted(before)
    if before is None or counted is None:
        results = calls.count_in_prompt(connection, session_id, 0, number)
        return Growth(0, number, turn["raw"], turn["exact"], size, results, is_whole=True)
    return Growth(
        before["number"],
        number,
        max(0, turn["raw"] - before["raw"]),
        max(0, turn["exact"] - before["exact"]),
        size - counted,
        calls.count_in_prompt(connection, session_id, before["number"], number),
        is_whole=False,
    )


def _counted(turn: sqlite3.Row) -> int | None:
    """Return the API's count of an earlier prompt, or None if it is implausibly small."""
    size = true_prompt_size(json.loads(turn["usage"] or "null"))
    return size if size is not None and size >= turn["raw"] / ABSURD + turn["exact"] else None


def _believe(
    connection: sqlite3.Connection, window: Window, grown: Growth, missing: float
) -> Window:
    """Charge what was new with what the estimate missed, each piece by its share."""
    fixed = window.system_raw + window.head_raw if grown.is_whole else 0
    span = {"session": window.session_id, "first": grown.first, "turn": grown.turn}
    charged = fixed + calls.new_raw(connection, span) + segments.new_raw(connection, span)
    if not charged:
        return window
    times = 1 + missing / charged
    calls.scale_new(connection, span, times)
    segments.scale_new(connection, span, times)
    turns.add_raw(connection, window.session_id, grown.turn, round(missing))
    if not grown.is_whole:
        return window
    return replace(
        window,
        system_raw=round(window.system_raw * times),
        head_raw=round(window.head_raw * times),
    )
