"""Tell the model about its budget."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass, replace

from efrit_budget.budget import bands
from efrit_budget.budget.bands import Band
from efrit_budget.budget.estimate import estimate
from efrit_budget.conversation import segments, stored_pieces
from efrit_budget.conversation.blocks import valid_json
from efrit_budget.conversation.bounds import Bounds, used_by_tier
from efrit_budget.conversation.pieces import Phase, Piece, PieceState, with_states
from efrit_budget.conversation.prefix import prefix_estimate
from efrit_budget.conversation.segments import Segment
from efrit_budget.conversation.windows import Window
from efrit_budget.errors import JsonObject

CACHE_MARK = {"type": "ephemeral"}


@dataclass(frozen=True)
class AlertOutcome:
    """The window once the model is told what it is to be told now."""

    window: Window
    pieces: list[Piece]
    text: str | None = None
    rewritten: bool = False
    """Whether the system text was rewritten for it."""


def append_alert(
    connection: sqlite3.Connection,
    window: Window,
    pieces: list[Piece],
    bounds: Bounds,
    system: list[JsonObject],
) -> AlertOutcome:
    """Append a warning or a notice if one is due; `system` are the blocks of the client.

    A warning goes as a system message at once. Where the model takes none, the system text is
    rewritten with it, which is an epoch. Behind a reply that is to be continued, and behind
    another system message, nothing can be appended, and the alert waits.
    """
    last = pieces[-1].phase
    if last is Phase.REPLY or (last is Phase.NOTICE and bounds.model.system_messages):
        return AlertOutcome(window, pieces)
    band, warned = Band(window.band), Band(window.warned)
    if band.rank != warned.rank:
        window = replace(window, warned=str(band))
    if band.rank <= warned.rank:
        return _append_notice(connection, window, pieces, bounds)
    warning = bands.warning(bounds.prompt_limit - window.kept)
    if bounds.model.system_messages:
        return _append(connection, window, pieces, bounds, "system", warning)
    return _rewrite_system(connection, window, pieces, bounds, system, warning)


def system_with_warning(
    system: list[JsonObject], window: Window, bounds: Bounds
) -> list[JsonObject]:
    """Return the client's system blocks with the warning in force."""
    blocks = [dict(block) for block in system]
    if window.warned != Band.AMPLE:
        text = bands.warning(bounds.prompt_limit - window.kept)
        blocks.append({"type": "text", "text": text})
    if blocks:
        blocks[-1]["cache_control"] = CACHE_MARK
    return blocks


def _append_notice(
    connection: sqlite3.Connection, window: Window, pieces: list[Piece], bounds: Bounds
) -> AlertOutcome:
    """Append the notice once per epoch when a rewrite is near."""
    remaining = bounds.prompt_limit - sum(used_by_tier(pieces, window, bounds).values())
    marks = bands.thresholds(bounds.limits.total, bounds.limits.warning_threshold)
    if remaining >= marks.low or window.noticed:
        return AlertOutcome(window, pieces)
    role = "system" if bounds.model.system_messages else "user"
    window = replace(window, noticed=1)
    return _append(connection, window, pieces, bounds, role, bands.notice(remaining))


def _rewrite_system(
    connection: sqlite3.Connection,
    window: Window,
    pieces: list[Piece],
    bounds: Bounds,
    system: list[JsonObject],
    warning: str,
) -> AlertOutcome:
    """Rewrite only the system text with the warning; begin an epoch."""
    states = {
        piece.key: PieceState.GONE if piece.phase is Phase.NOTICE else PieceState.COMPRESSED
        for piece in pieces
        if piece.phase in (Phase.NOTICE, Phase.REPLY)
    }
    stored_pieces.set_states(connection, window.session_id, states)
    system = system_with_warning(system, window, bounds)
    rewritten = replace(
        window,
        epoch=window.epoch + 1,
        next_place=0,
        noticed=0,
        system=valid_json(system),
        system_raw=prefix_estimate(system, json.loads(window.tools or "[]")),
    )
    return AlertOutcome(rewritten, with_states(pieces, states), warning, rewritten=True)


def _append(
    connection: sqlite3.Connection,
    window: Window,
    pieces: list[Piece],
    bounds: Bounds,
    role: str,
    text: str,
) -> AlertOutcome:
    raw = estimate(text)
    content = valid_json([{"type": "text", "text": text}])
    key = (window.session_id, window.turn, Phase.NOTICE)
    segments.insert(connection, Segment(*key, role, content, raw, raw, window.clock))
    tokens = bounds.calibration.tokens(raw)
    piece = Piece(window.turn, Phase.NOTICE, 0, PieceState.FULL, tokens, tokens, window.clock)
    return AlertOutcome(window, [*pieces, piece], text)
