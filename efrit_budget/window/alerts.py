"""What the model is told of its budget, when, and at which place."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import replace

from efrit_budget.budget import bands
from efrit_budget.budget.bands import Band
from efrit_budget.budget.estimate import estimate
from efrit_budget.errors import Json
from efrit_budget.window.blocks import written
from efrit_budget.window.frame import Bounds, used_now
from efrit_budget.window.pieces import Phase, Piece
from efrit_budget.window.record import Window
from efrit_budget.window.schema import prefix_estimate

CACHE_MARK = {"type": "ephemeral"}


def alert(
    connection: sqlite3.Connection,
    window: Window,
    pieces: Sequence[Piece],
    bounds: Bounds,
    *,
    rewritten: bool,
) -> tuple[Window, bool, str | None]:
    """Append what is to be told now; gives the window, whether the past was rewritten, and it.

    A warning goes as a system message at once. Where the model takes none, the system text is
    rewritten with it, which is an epoch. Behind a reply that is to be continued, and behind
    another system message, nothing can be appended, and the alert waits.
    """
    last = pieces[-1].phase
    if last is Phase.REPLY or (last is Phase.NOTICE and bounds.model.system_messages):
        return window, rewritten, None
    band, warned = Band(window.band), Band(window.warned)
    if band.rank < warned.rank:
        window = replace(window, warned=str(band))
    if band.rank > warned.rank:
        window = replace(window, warned=str(band))
        warning = bands.warning(bounds.prompt_limit - window.kept)
        if not bounds.model.system_messages:
            return _warned_in_system(connection, window, bounds), True, warning
        _append(connection, window, "system", warning)
        return window, rewritten, warning
    window, notice = _noticed(connection, window, pieces, bounds)
    return window, rewritten, notice


def warned_system(
    system: list[dict[str, Json]], window: Window, bounds: Bounds
) -> list[dict[str, Json]]:
    """The client's system blocks, and the warning where one is in force."""
    blocks = [dict(block) for block in system]
    if window.warned != Band.AMPLE:
        text = bands.warning(bounds.prompt_limit - window.kept)
        blocks.append({"type": "text", "text": text})
    if blocks:
        blocks[-1]["cache_control"] = CACHE_MARK
    return blocks


def _noticed(
    connection: sqlite3.Connection, window: Window, pieces: Sequence[Piece], bounds: Bounds
) -> tuple[Window, str | None]:
    """Once in an epoch, when the next compaction is near."""
    remaining = bounds.prompt_limit - sum(used_now(pieces, window, bounds).values())
    marks = bands.thresholds(bounds.limits.total, bounds.limits.warning_threshold)
    if remaining >= marks.low or window.noticed:
        return window, None
    role = "system" if bounds.model.system_messages else "user"
    notice = bands.notice(remaining)
    _append(connection, window, role, notice)
    return replace(window, noticed=1), notice


def _warned_in_system(connection: sqlite3.Connection, window: Window, bounds: Bounds) -> Window:
    """The system text rewritten with the warning: an epoch without thinking, nothing compacted."""
    connection.execute(
        "UPDATE segments SET state = 'compressed'"
        " WHERE session_id = ? AND phase = ? AND state = 'full'",
        (window.session_id, Phase.REPLY),
    )
    connection.execute(
        "UPDATE segments SET state = 'gone' WHERE session_id = ? AND phase = ?",
        (window.session_id, Phase.NOTICE),
    )
    system = warned_system(json.loads(window.client_system or "[]"), window, bounds)
    return replace(
        window,
        epoch=window.epoch + 1,
        next_place=0,
        noticed=0,
        system=written(system),
        system_raw=prefix_estimate(system, json.loads(window.tools or "[]")),
    )


def _append(connection: sqlite3.Connection, window: Window, role: str, text: str) -> None:
    raw = estimate(text)
    connection.execute(
        "INSERT INTO segments (session_id, turn, phase, role, content, raw, bare_raw, last_use)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            window.session_id,
            window.turn,
            Phase.NOTICE,
            role,
            written([{"type": "text", "text": text}]),
            raw,
            raw,
            window.clock,
        ),
    )
