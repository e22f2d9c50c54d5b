"""Tell the model of its budget: notices and warnings."""

from dataclasses import dataclass, replace
from sqlite3 import Connection

from efrit_budget.budget import bands
from efrit_budget.budget.bands import Band
from efrit_budget.conversation import segments, stored_pieces
from efrit_budget.conversation.blocks import valid_json
from efrit_budget.conversation.bounds import Bounds
from efrit_budget.conversation.pieces import Phase, Piece, PieceState, with_states
from efrit_budget.conversation.prefix import prefix_estimate
from efrit_budget.conversation.segments import Segment
from efrit_budget.conversation.window_state import WindowState
from efrit_budget.conversation.windows import Window
from efrit_budget.errors import JsonObject

CACHE_MARK = {"type": "ephemeral"}


@dataclass(frozen=True)
class AlertOutcome:
    """The state of the window after `append_alert`, with the text of the alert if one was due."""

    state: WindowState
    text: str | None = None
    rewritten: bool = False
    """Whether the system text was rewritten for the alert."""


def append_alert(
    connection: Connection, state: WindowState, system: list[JsonObject]
) -> AlertOutcome:
    """Append a warning or a notice if one is due; `system` are the blocks of the client.

    A warning is a system message. If the model takes no system messages, the warning becomes a
    part of the system text, which begins an epoch. Nothing can be appended after a paused reply,
    nor after another system message: then the alert waits.
    """
    window, bounds, last = state.window, state.bounds, state.pieces[-1].phase
    if last is Phase.REPLY or (last is Phase.NOTICE and bounds.model.system_messages):
        return AlertOutcome(state)
    band, warned = Band(window.band), Band(window.warned)
    if band.rank != warned.rank:
        state = replace(state, window=replace(window, warned=str(band)))
    if band.rank <= warned.rank:
        return _append_notice(connection, state)
    warning = bands.warning(bounds.prompt_limit - window.kept)
    if bounds.model.system_messages:
        return _append(connection, state, "system", warning)
    return _rewrite_system(connection, state, system, warning)


def system_with_warning(
    system: list[JsonObject], window: Window, bounds: Bounds
) -> list[JsonObject]:
    """Return the client's system blocks and the warning in force, if any, with a cache mark."""
    blocks = [dict(block) for block in system]
    if window.warned != Band.AMPLE:
        text = bands.warning(bounds.prompt_limit - window.kept)
        blocks.append({"type": "text", "text": text})
    if blocks:
        blocks[-1]["cache_control"] = CACHE_MARK
    return blocks


def _append_notice(connection: Connection, state: WindowState) -> AlertOutcome:
    """Append the notice once per epoch when a rewrite is near."""
    bounds = state.bounds
    remaining = bounds.prompt_limit - state.used
    marks = bands.thresholds(bounds.limits.total, bounds.limits.warning_threshold)
    if remaining >= marks.low or state.window.noticed:
        return AlertOutcome(state)
    role = "system" if bounds.model.system_messages else "user"
    state = replace(state, window=replace(state.window, noticed=1))
    return _append(connection, state, role, bands.notice(remaining))


def _rewrite_system(
    connection: Connection, state: WindowState, system: list[JsonObject], warning: str
) -> AlertOutcome:
    """Begin an epoch with the warning in the system text, without notices and thinking."""
    window = state.window
    states = {
        piece.key: PieceState.GONE if piece.phase is Phase.NOTICE else PieceState.COMPRESSED
        for piece in state.pieces
        if piece.phase is Phase.NOTICE
        or (piece.phase is Phase.REPLY and piece.state is PieceState.FULL)
    }
    stored_pieces.set_states(connection, window.session_id, states)
    system = system_with_warning(system, window, state.bounds)
    window = replace(
        window,
        epoch=window.epoch + 1,
        next_place=0,
        noticed=0,
        system=valid_json(system),
        system_raw=prefix_estimate(system, window.offered_tools(), state.bounds.family),
    )
    pieces = with_states(state.pieces, states)
    return AlertOutcome(WindowState(window, state.bounds, pieces), warning, rewritten=True)


def _append(connection: Connection, state: WindowState, role: str, text: str) -> AlertOutcome:
    window, raw = state.window, state.bounds.family.estimate(text)
    content = valid_json([{"type": "text", "text": text}])
    key = (window.session_id, window.turn, Phase.NOTICE)
    segments.insert(connection, Segment(*key, role, content, raw, raw, window.clock))
    tokens = state.bounds.calibration.tokens(raw)
    piece = Piece(window.turn, Phase.NOTICE, 0, PieceState.FULL, tokens, tokens, window.clock)
    return AlertOutcome(replace(state, pieces=[*state.pieces, piece]), text)
