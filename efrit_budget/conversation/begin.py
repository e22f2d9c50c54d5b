"""Begin a turn: build the next request."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, replace

from efrit_budget.budget import bands
from efrit_budget.budget.bands import Band
from efrit_budget.conversation import stored_pieces, turns, user_message, windows
from efrit_budget.conversation.alerts import append_alert, system_with_warning
from efrit_budget.conversation.blocks import valid_json
from efrit_budget.conversation.bounds import Bounds, least_prompt, used_by_tier
from efrit_budget.conversation.evicted import evicted_lines, head_estimate
from efrit_budget.conversation.messages import Assembly, assemble
from efrit_budget.conversation.pieces import Phase, Piece, with_states
from efrit_budget.conversation.plan import Plan, plan
from efrit_budget.conversation.prefix import Offer, prefix_estimate, schemas, tool_set
from efrit_budget.conversation.tool_uses import answer_unanswered
from efrit_budget.conversation.windows import Window
from efrit_budget.errors import EfritError, JsonObject, field_error


class BudgetError(EfritError):
    """The required content does not fit the budget."""

    code = -32010


@dataclass(frozen=True)
class TurnRequest:
    """The client's request for a turn."""

    model: str
    system: list[JsonObject]
    offers: Sequence[Offer]
    user_message: list[JsonObject] | None
    environment: str = ""
    """What the model is told of date and place; it is renewed at rewrites, and causes none."""

    def system_blocks(self) -> list[JsonObject]:
        """Return the system text as it is sent, with the environment last."""
        said: list[JsonObject] = [{"type": "text", "text": self.environment}]
        return [*self.system, *(said if self.environment else [])]


@dataclass(frozen=True)
class BegunTurn:
    """A turn that has begun."""

    window: Window
    pieces: Sequence[Piece]
    """What the window holds."""
    turn: int
    rewritten: bool
    assembly: Assembly
    notes: tuple[str, ...]
    """What the person is alert: what was stored and sent in part, what the model is alert of its
    budget."""
    sent_again: bool = False
    """Whether the client asks again what it asked before, and may have had no answer."""


def begin(
    connection: sqlite3.Connection, window: Window, turn_request: TurnRequest, bounds: Bounds
) -> BegunTurn:
    """Put what is new behind what is there, or rewrite it all where it must be.

    What is sent again before its reply is there is stored once, and is the same turn.
    """
    request_digest = _digest(turn_request.user_message)
    if sent_again := _is_sent_again(connection, window, request_digest):
        pieces = stored_pieces.load_pieces(connection, window.session_id, bounds.calibration)
        if _is_all_sent(window, turn_request, pieces):
            nothing = Assembly(window.next_place)
            return BegunTurn(window, pieces, window.turn, False, nothing, (), sent_again=True)
        turn_request = replace(turn_request, user_message=None)
    window = replace(window, turn=window.turn + 1, clock=window.clock + 1)
    answer_unanswered(connection, window.session_id, window.clock)
    notes: tuple[str, ...] = ()
    if turn_request.user_message:
        window, notes = user_message.store(connection, window, turn_request.user_message, bounds)
    pieces = stored_pieces.load_pieces(connection, window.session_id, bounds.calibration)
    _check_waits_for_reply(connection, window, pieces)
    warned = Band(window.warned)
    window, pieces, rewritten = _prepare_window(connection, window, pieces, turn_request, bounds)
    if Band(window.warned).rank > warned.rank:
        notes += (bands.warning(bounds.prompt_limit - window.kept),)
    alert = append_alert(connection, window, pieces, bounds, turn_request.system_blocks())
    window, pieces, rewritten = alert.window, alert.pieces, rewritten or alert.rewritten
    if rewritten:
        pieces = _clear_places(connection, window, pieces)
    if rewritten or window.left_window is None:
        saved = stored_pieces.tokens_saved(connection, window.session_id, bounds.calibration)
        window = replace(window, left_window=saved)
    window, assembly = _assemble(connection, window, pieces, bounds, whole=rewritten)
    _keep_turn(connection, window, turn_request, request_digest)
    windows.save(connection, window)
    notes += () if alert.text is None else (alert.text,)
    return BegunTurn(window, pieces, window.turn, rewritten, assembly, notes, sent_again=sent_again)


def _is_sent_again(
    connection: sqlite3.Connection, window: Window, request_digest: bytes | None
) -> bool:
    """Tell whether the latest turn was begun with this very request, and has no reply."""
    if request_digest is None:
        return False
    row = turns.get(connection, window.session_id, window.turn)
    return row is not None and row["ended"] is None and row["request"] == request_digest


def _is_all_sent(window: Window, turn_request: TurnRequest, pieces: Sequence[Piece]) -> bool:
    """Tell whether the request of the latest turn would be the same if it was made now."""
    is_new = any(piece.place is None for piece in pieces)
    return not (is_new or window.must_rewrite or _prefix_changed(window, turn_request))


def _digest(user_message: list[JsonObject] | None) -> bytes | None:
    """Return what tells one request from another; None for none, which may come again."""
    if user_message is None:
        return None
    return hashlib.blake2b(valid_json(user_message).encode(), digest_size=16).digest()


def _check_waits_for_reply(
    connection: sqlite3.Connection, window: Window, pieces: Sequence[Piece]
) -> None:
    """Raise unless a user message or a paused reply is last."""
    if pieces and pieces[-1].phase is not Phase.REPLY:
        return
    row = turns.get(connection, window.session_id, window.turn_ended)
    if row is None or row["stop_reason"] != "pause_turn":
        raise field_error(
            "user_message", "needed: there is nothing in the conversation that waits for a reply"
        )


def _prepare_window(
    connection: sqlite3.Connection,
    window: Window,
    pieces: list[Piece],
    turn_request: TurnRequest,
    bounds: Bounds,
) -> tuple[Window, list[Piece], bool]:
    """Return window and pieces before alerts, and whether they were rewritten."""
    changed = _prefix_changed(window, turn_request)
    if changed:
        window = _rebuild_prefix(window, turn_request, bounds)
    new_plan = plan(pieces, bounds.frame(connection, window), window.turn_ended)
    window = _update_band(window, new_plan, bounds)
    used = sum(used_by_tier(pieces, window, bounds).values())
    if not (changed or used > bounds.plan_limit or window.must_rewrite):
        return window, pieces, False
    if not new_plan.fits:
        raise _too_large(new_plan, bounds)
    if window.epoch == 0:
        window = replace(window, epoch=1, warned=window.band)
        return _rebuild_prefix(window, turn_request, bounds), pieces, False
    window = _rewrite(connection, window, turn_request, new_plan, bounds)
    return window, with_states(pieces, new_plan.states), True


def _clear_places(
    connection: sqlite3.Connection, window: Window, pieces: Sequence[Piece]
) -> list[Piece]:
    """Return the pieces as new ones: a rewrite sends everything again."""
    stored_pieces.clear_places(connection, window.session_id)
    return [replace(piece, place=None, wish=None) for piece in pieces]


def _prefix_changed(window: Window, turn_request: TurnRequest) -> bool:
    """Return whether the client's prefix differs from the last one."""
    return (window.model, window.client_system, window.tool_set) != (
        turn_request.model,
        valid_json(turn_request.system),
        tool_set(turn_request.offers),
    )


def _rebuild_prefix(window: Window, turn_request: TurnRequest, bounds: Bounds) -> Window:
    """Rebuild the system text and tool schemas with the current warning and hints."""
    remaining = max(1, bounds.prompt_limit - window.kept)
    system = system_with_warning(turn_request.system_blocks(), window, bounds)
    tools = schemas(turn_request.offers, lambda name: min(bounds.limits.for_tool(name), remaining))
    return replace(
        window,
        model=turn_request.model,
        client_system=valid_json(turn_request.system),
        tool_set=tool_set(turn_request.offers),
        system=valid_json(system),
        tools=valid_json(tools),
        system_raw=prefix_estimate(system, tools),
    )


def _too_large(made: Plan, bounds: Bounds) -> BudgetError:
    return BudgetError(
        f"system prompt, tools, pinned results and the request need {made.total:,} tokens; "
        f"the prompt may have {bounds.plan_limit:,}. Raise the total, shorten the request, "
        "or unpin results."
    )


def _update_band(window: Window, made: Plan, bounds: Bounds) -> Window:
    """Return the window with the size after a rewrite and its band."""
    remaining = bounds.prompt_limit - made.total
    marks = bands.thresholds(bounds.limits.total, bounds.limits.warning_threshold)
    band = bands.band_after(Band(window.band), remaining, marks)
    return replace(window, band=str(band), kept=made.total)


def _rewrite(
    connection: sqlite3.Connection,
    window: Window,
    turn_request: TurnRequest,
    made: Plan,
    bounds: Bounds,
) -> Window:
    """Apply the plan and begin a new epoch."""
    stored_pieces.set_states(connection, window.session_id, made.states)
    lines = evicted_lines(connection, window.session_id, made.head, bounds.cost)
    rebuilt = _rebuild_prefix(replace(window, warned=window.band), turn_request, bounds)
    return replace(
        rebuilt,
        epoch=window.epoch + 1,
        next_place=0,
        head=lines,
        head_raw=head_estimate(lines),
        must_rewrite=0,
        noticed=0,
    )


def _assemble(
    connection: sqlite3.Connection,
    window: Window,
    pieces: Sequence[Piece],
    bounds: Bounds,
    *,
    whole: bool,
) -> tuple[Window, Assembly]:
    """Return the messages to send: all after a rewrite, else the new ones."""
    assembly = assemble(
        (
            (piece, stored_pieces.load_content(connection, window.session_id, piece))
            for piece in pieces
            if piece.place is None
        ),
        head=window.head if whole else None,
        first_place=window.next_place,
    )
    stored_pieces.set_places(connection, window.session_id, assembly.places)
    in_prompt = sum(used_by_tier(pieces, window, bounds).values())
    window = replace(
        window,
        next_place=assembly.next_place,
        in_prompt=in_prompt,
        kept=min(window.kept, in_prompt),
        least=least_prompt(pieces, window, bounds),
        turn_tokens=0,
    )
    return window, assembly


def _keep_turn(
    connection: sqlite3.Connection,
    window: Window,
    turn_request: TurnRequest,
    request_digest: bytes | None,
) -> None:
    raw, exact = stored_pieces.raw_and_exact(connection, window.session_id)
    turns.insert(
        connection,
        window.session_id,
        window.turn,
        epoch=window.epoch,
        model=turn_request.model,
        raw=raw + window.system_raw + window.head_raw,
        exact=exact,
        request=request_digest,
    )
