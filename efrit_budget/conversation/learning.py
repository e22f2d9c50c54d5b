"""Learn from the usage block of a reply: calibrate the model, or correct estimates of texts."""

import json
from dataclasses import dataclass, replace
from sqlite3 import Connection, Row

from efrit_budget.budget.calibration import ABSURD, true_prompt_size
from efrit_budget.budget.endpoint import stored_endpoint
from efrit_budget.conversation import calls, segments, turns, windows
from efrit_budget.conversation.bounds import Bounds
from efrit_budget.conversation.windows import Window
from efrit_budget.errors import Json

FAR = 3.0
"""The ratio of reported to estimated tokens above which texts, not the model, were misjudged."""
WORTH_BELIEVING = 1_000
"""The least tokens missing from an estimate for which the estimates of texts are corrected."""


@dataclass(frozen=True)
class Growth:
    """The growth of a prompt since the prompt before it in the epoch, or the whole first prompt."""

    first: int
    """The first turn whose results were new."""
    turn: int
    raw: int
    exact: int
    tokens: int
    """The tokens that the API counted."""
    results: int
    is_whole: bool


def learn(
    connection: Connection, window: Window, turn: Row, usage: Json, bounds: Bounds
) -> tuple[Window, Bounds]:
    """Calibrate the model; or, if new texts cost far more than estimated, correct their estimates.

    Return the window and the bounds. A reported size is taken to be at most the model's window.
    """
    size = true_prompt_size(usage)
    if size is None:
        return window, bounds
    size = min(size, bounds.model.window)
    grown = _growth(connection, turn, size)
    known, frames = bounds.calibration, grown.results * bounds.calibration.frame
    missed = grown.tokens - grown.exact - known.tokens(grown.raw, grown.results)
    if missed >= WORTH_BELIEVING and grown.tokens - grown.exact - frames > FAR * grown.raw:
        return _raise_estimates(connection, window, grown, missed / known.factor), bounds
    results = (
        grown.results
        if grown.is_whole
        else calls.count_in_prompt(connection, turn["session_id"], 0, turn["number"])
    )
    learnt = known.after(turn["raw"], turn["exact"], size, results)
    if not grown.is_whole:
        learnt = learnt.after_results(grown.raw, grown.tokens - grown.exact, grown.results)
    provider = stored_endpoint(window.endpoint).provider
    windows.save_calibration(connection, bounds.model.name, learnt, provider)
    return window, replace(bounds, calibration=learnt)


def _growth(connection: Connection, turn: Row, size: int) -> Growth:
    session_id, number = turn["session_id"], turn["number"]
    before = turns.find_previous(connection, turn)
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


def _counted(turn: Row) -> int | None:
    """Return the API's count of an earlier prompt, or None if it is missing or far too small."""
    size = true_prompt_size(json.loads(turn["usage"] or "null"))
    return size if size is not None and size >= turn["raw"] / ABSURD + turn["exact"] else None


def _raise_estimates(
    connection: Connection, window: Window, grown: Growth, missing: float
) -> Window:
    """Spread the missing tokens over the new texts, in proportion to their estimates."""
    fixed = window.system_raw + window.head_raw if grown.is_whole else 0
    span = {"session": window.session_id, "first": grown.first, "turn": grown.turn}
    charged = fixed + calls.sum_new(connection, span) + segments.sum_new(connection, span)
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
