"""The beginning of a turn: what the next model call is to look like."""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from efrit_budget.budget import bands
from efrit_budget.budget.bands import Band
from efrit_budget.errors import EfritError, Json, field_error
from efrit_budget.window import record, request
from efrit_budget.window.alerts import alert, warned_system
from efrit_budget.window.blocks import written
from efrit_budget.window.frame import Bounds, least, used_now
from efrit_budget.window.head import head, head_estimate
from efrit_budget.window.messages import Assembly, assemble
from efrit_budget.window.pieces import Phase, Piece
from efrit_budget.window.plan import Plan, plan
from efrit_budget.window.record import Window
from efrit_budget.window.schema import Offer, prefix_estimate, schemas, tool_set
from efrit_budget.window.uses import answer_the_unanswered


class BudgetError(EfritError):
    """What must be in the prompt does not fit the budget."""

    code = -32010


@dataclass(frozen=True)
class Wanted:
    """What the client wants of the next model call."""

    model: str
    system: list[dict[str, Json]]
    offers: Sequence[Offer]
    user_message: list[dict[str, Json]] | None


@dataclass(frozen=True)
class Begun:
    """A turn as it begins."""

    window: Window
    pieces: Sequence[Piece]
    """What the window holds."""
    turn: int
    rewritten: bool
    assembly: Assembly
    notes: tuple[str, ...]
    """What the person is told: what was stored and sent in part, what the model is told of its
    budget."""
    sent_again: bool = False
    """Whether the client asks again what it asked before, and may have had no answer."""


def begin(connection: sqlite3.Connection, window: Window, wanted: Wanted, bounds: Bounds) -> Begun:
    """Put what is new behind what is there, or rewrite it all where it must be.

    What is sent again before its reply is there is stored once, and is the same turn.
    """
    request_digest = _digest(wanted.user_message)
    sent_again = _is_sent_again(connection, window, request_digest)
    if sent_again:
        pieces = record.pieces(connection, window.session_id, bounds.calibration)
        if _is_all_sent(window, wanted, pieces):
            nothing = Assembly(window.next_place)
            return Begun(window, pieces, window.turn, False, nothing, (), sent_again=True)
        wanted = replace(wanted, user_message=None)
    window = replace(window, turn=window.turn + 1, clock=window.clock + 1)
    answer_the_unanswered(connection, window.session_id, window.clock)
    notes: tuple[str, ...] = ()
    if wanted.user_message:
        window, notes = request.store(connection, window, wanted.user_message, bounds)
    pieces = record.pieces(connection, window.session_id, bounds.calibration)
    _check_whose_turn_it_is(connection, window, pieces)
    warned = Band(window.warned)
    window, rewritten = _settled(connection, window, pieces, wanted, bounds)
    if Band(window.warned).rank > warned.rank:
        notes += (bands.warning(bounds.prompt_limit - window.kept),)
    if rewritten:
        pieces = record.pieces(connection, window.session_id, bounds.calibration)
    window, rewritten, told = alert(connection, window, pieces, bounds, rewritten=rewritten)
    if rewritten:
        record.forget_places(connection, window.session_id)
    if rewritten or told is not None:
        pieces = record.pieces(connection, window.session_id, bounds.calibration)
    if rewritten or window.left_window is None:
        left = record.left(connection, window.session_id, bounds.calibration)
        window = replace(window, left_window=left)
    window, assembly = _assembled(connection, window, pieces, bounds, whole=rewritten)
    _keep_turn(connection, window, wanted, request_digest)
    record.save(connection, window)
    notes += () if told is None else (told,)
    return Begun(window, pieces, window.turn, rewritten, assembly, notes, sent_again=sent_again)


def _is_sent_again(
    connection: sqlite3.Connection, window: Window, request_digest: bytes | None
) -> bool:
    """Tell whether the latest turn was begun with this very request, and has no reply."""
    if request_digest is None:
        return False
    row = connection.execute(
        "SELECT request FROM turns WHERE session_id = ? AND number = ? AND ended IS NULL",
        (window.session_id, window.turn),
    ).fetchone()
    return row is not None and row["request"] == request_digest


def _is_all_sent(window: Window, wanted: Wanted, pieces: Sequence[Piece]) -> bool:
    """Tell whether the request of the latest turn would be the same if it was made now."""
    is_new = any(piece.place is None for piece in pieces)
    return not (is_new or window.must_rewrite or _changed(window, wanted))


def _digest(user_message: list[dict[str, Json]] | None) -> bytes | None:
    """Return what tells one request from another; None for none, which may come again."""
    if user_message is None:
        return None
    return hashlib.blake2b(written(user_message).encode(), digest_size=16).digest()


def _check_whose_turn_it_is(
    connection: sqlite3.Connection, window: Window, pieces: Sequence[Piece]
) -> None:
    """The API answers a person's turn; a reply at the end only where it paused."""
    if pieces and pieces[-1].phase is not Phase.REPLY:
        return
    row = connection.execute(
        "SELECT stop_reason FROM turns WHERE session_id = ? AND number = ?",
        (window.session_id, window.turn_ended),
    ).fetchone()
    if row is None or row["stop_reason"] != "pause_turn":
        raise field_error(
            "user_message", "needed: there is nothing in the conversation that waits for a reply"
        )


def _settled(
    connection: sqlite3.Connection,
    window: Window,
    pieces: Sequence[Piece],
    wanted: Wanted,
    bounds: Bounds,
) -> tuple[Window, bool]:
    """The window as it goes out, alerts apart, and whether its past was rewritten for it."""
    changed = _changed(window, wanted)
    if changed:
        window = _told(window, wanted, bounds)
    made = plan(pieces, bounds.frame(connection, window), window.turn_ended)
    window = _banded(window, made, bounds)
    used = sum(used_now(pieces, window, bounds).values())
    if not (changed or used > bounds.plan_limit or window.must_rewrite):
        return window, False
    if not made.fits:
        raise _too_large(made, bounds)
    if window.epoch == 0:
        window = replace(window, epoch=1, warned=window.band)
        return _told(window, wanted, bounds), False
    return _rewritten(connection, window, wanted, made, bounds), True


def _changed(window: Window, wanted: Wanted) -> bool:
    """Whether the client's own part of the prefix is another than before."""
    return (window.model, window.client_system, window.tool_set) != (
        wanted.model,
        written(wanted.system),
        tool_set(wanted.offers),
    )


def _told(window: Window, wanted: Wanted, bounds: Bounds) -> Window:
    """System text and tools written anew: with the warning in force, and today's hints."""
    left = max(1, bounds.prompt_limit - window.kept)
    system = warned_system(wanted.system, window, bounds)
    tools = schemas(wanted.offers, lambda name: min(bounds.limits.for_tool(name), left))
    return replace(
        window,
        model=wanted.model,
        client_system=written(wanted.system),
        tool_set=tool_set(wanted.offers),
        system=written(system),
        tools=written(tools),
        system_raw=prefix_estimate(system, tools),
    )


def _too_large(made: Plan, bounds: Bounds) -> BudgetError:
    return BudgetError(
        f"system prompt, tools, pinned results and the request need {made.total:,} tokens; "
        f"the prompt may have {bounds.plan_limit:,}. Raise the total, shorten the request, "
        "or unpin results."
    )


def _banded(window: Window, made: Plan, bounds: Bounds) -> Window:
    """What would be left after compacting, and the band that is."""
    left = bounds.prompt_limit - made.total
    marks = bands.thresholds(bounds.limits.total, bounds.limits.warning_threshold)
    band = bands.band_after(Band(window.band), left, marks)
    return replace(window, band=str(band), kept=made.total)


def _rewritten(
    connection: sqlite3.Connection, window: Window, wanted: Wanted, made: Plan, bounds: Bounds
) -> Window:
    """A new epoch: the pieces as planned, the lines of what left, system and tools anew."""
    record.set_states(connection, window.session_id, made.states)
    lines = head(connection, window.session_id, made.head, bounds.cost)
    told = _told(replace(window, warned=window.band), wanted, bounds)
    return replace(
        told,
        epoch=window.epoch + 1,
        next_place=0,
        head=lines,
        head_raw=head_estimate(lines),
        must_rewrite=0,
        noticed=0,
    )


def _assembled(
    connection: sqlite3.Connection,
    window: Window,
    pieces: Sequence[Piece],
    bounds: Bounds,
    *,
    whole: bool,
) -> tuple[Window, Assembly]:
    """The messages to send: all of them after a rewrite, else what no message carries yet."""
    assembly = assemble(
        (
            (piece, record.content(connection, window.session_id, piece))
            for piece in pieces
            if piece.place is None
        ),
        head=window.head if whole else None,
        first_place=window.next_place,
    )
    record.set_places(connection, window.session_id, assembly.places)
    in_prompt = sum(used_now(pieces, window, bounds).values())
    window = replace(
        window,
        next_place=assembly.next_place,
        in_prompt=in_prompt,
        kept=min(window.kept, in_prompt),
        least=least(pieces, window, bounds),
        turn_tokens=0,
    )
    return window, assembly


def _keep_turn(
    connection: sqlite3.Connection, window: Window, wanted: Wanted, request_digest: bytes | None
) -> None:
    raw, exact = record.raw_and_exact(connection, window.session_id)
    connection.execute(
        "INSERT INTO turns (session_id, number, epoch, model, begun, raw, exact, request)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            window.session_id,
            window.turn,
            window.epoch,
            wanted.model,
            time.time(),
            raw + window.system_raw + window.head_raw,
            exact,
            request_digest,
        ),
    )
