"""Begin a turn: build the next request."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from sqlite3 import Connection

from efrit_budget.budget import bands
from efrit_budget.budget.bands import Band
from efrit_budget.budget.endpoint import NOT_DESCRIBED, Endpoint, Feature, stored_endpoint
from efrit_budget.budget.prices import CACHE_SECONDS, cache_rates
from efrit_budget.conversation import (
    calls,
    segments,
    stored_pieces,
    turns,
    user_message,
    windows,
)
from efrit_budget.conversation.alerts import append_alert, system_with_warning
from efrit_budget.conversation.blocks import valid_json
from efrit_budget.conversation.bounds import Bounds
from efrit_budget.conversation.evicted import evicted_lines, head_estimate
from efrit_budget.conversation.family_change import take_family
from efrit_budget.conversation.messages import Assembly, assemble
from efrit_budget.conversation.name_index import texts_of, write_index
from efrit_budget.conversation.payoff import payoff
from efrit_budget.conversation.pieces import Content, Phase, Piece, with_states
from efrit_budget.conversation.plan import Plan
from efrit_budget.conversation.prefix import Offer, prefix_estimate, schemas, tool_set
from efrit_budget.conversation.tool_uses import answer_unanswered
from efrit_budget.conversation.window_state import WindowState, load_state
from efrit_budget.conversation.windows import Window
from efrit_budget.errors import EfritError, JsonObject, field_error


class BudgetError(EfritError):
    """The pieces that cannot leave the window do not fit the budget."""

    code = -32010


class Reason(StrEnum):
    """Why the window is rewritten."""

    MODEL = "model"
    SYSTEM = "system"
    TOOLS = "tools"
    EDITS = "edits"
    """User edits wait to be applied."""
    SIZE = "size"
    """The prompt would be too large."""
    COST = "cost"
    """Reading what a rewrite frees has cost as much as the rewrite."""
    COLD = "cold"
    """The cache has expired, so that the prompt is paid anew anyway."""
    WARNING = "warning"
    """A warning stands in the system text, since the model takes no system messages."""
    ORDER = "order"
    """The endpoint wants alternating messages, and the latest message had no reply."""


@dataclass(frozen=True)
class TurnRequest:
    """The client's request for a turn."""

    model: str
    system: list[JsonObject]
    offers: Sequence[Offer]
    user_message: list[JsonObject] | None
    environment: str = ""
    """The text on date and place; rewrites renew it, but a change of it causes no rewrite."""
    endpoint: Endpoint = NOT_DESCRIBED
    withheld: int = 0
    """The number of tools that are not offered, since the window is small."""

    def system_blocks(self) -> list[JsonObject]:
        """Return the system text as it is sent, with the environment last."""
        if not self.environment:
            return self.system
        return [*self.system, {"type": "text", "text": self.environment}]

    def changed_parts(self, window: Window) -> tuple[Reason, ...]:
        """Return which of model, system text and tools are not those of the window."""
        same = {
            Reason.MODEL: (window.model, window.endpoint) == (self.model, self.endpoint.as_text()),
            Reason.SYSTEM: window.client_system == valid_json(self.system),
            Reason.TOOLS: window.tool_set == tool_set(self.offers),
        }
        return tuple(reason for reason, is_same in same.items() if not is_same)

    def digest(self) -> bytes | None:
        """Return a hash of the user message, or None if the request has no user message."""
        if self.user_message is None:
            return None
        return hashlib.blake2b(valid_json(self.user_message).encode(), digest_size=16).digest()


@dataclass(frozen=True)
class BegunTurn:
    """A turn that has begun, with the messages to send (`assembly`)."""

    state: WindowState
    reasons: tuple[Reason, ...]
    """The reasons for a rewrite; none if the window was not rewritten."""
    assembly: Assembly
    notes: tuple[str, ...]
    """Lines for the person: on texts that were cut, and the alerts that the model gets."""
    sent_again: bool = False
    """Whether the client repeated its latest request, perhaps because it never got the reply."""

    @property
    def rewritten(self) -> bool:
        """Return whether all messages are sent anew."""
        return bool(self.reasons)


def begin(
    connection: Connection, window: Window, request: TurnRequest, bounds: Bounds, now: float
) -> BegunTurn:
    """Store the user message; return the new messages, or all of them if a rewrite is needed.

    `now` is the time in seconds. A user message that the client repeats before its reply is
    stored only once.
    """
    window, bounds = take_family(connection, window, bounds)
    digest = request.digest()
    if sent_again := _is_sent_again(connection, window, digest):
        state = load_state(connection, window, bounds)
        if _is_all_sent(state, request):
            return BegunTurn(state, (), Assembly(window.next_place), (), sent_again=True)
        request = replace(request, user_message=None)
    window, bounds, reasons = _take_changes(window, request, bounds)
    notes = bounds.scaling_notes(request.withheld) if Reason.MODEL in reasons else ()
    window = replace(window, turn=window.turn + 1, clock=window.clock + 1)
    answer_unanswered(connection, window.session_id, window.clock, bounds.family)
    if request.user_message:
        window, cuts = user_message.store(connection, window, request.user_message, bounds)
        notes += cuts
    state = load_state(connection, window, bounds)
    _check_waits_for_reply(connection, state)
    state, reasons = _rewrite_if_needed(connection, state, request, reasons, now)
    if Band(state.window.warned).rank > Band(window.warned).rank:
        notes += (bands.warning(bounds.prompt_limit - state.window.kept),)
    alert = append_alert(connection, state, request.system_blocks())
    state = alert.state
    if alert.rewritten:
        reasons += (Reason.WARNING,)
    if alert.text is not None:
        notes += (alert.text,)
    state, assembly = _assemble(connection, state, whole=bool(reasons))
    _insert_turn(connection, state.window, digest, now)
    windows.save(connection, state.window)
    return BegunTurn(state, reasons, assembly, notes, sent_again=sent_again)


def _is_sent_again(connection: Connection, window: Window, digest: bytes | None) -> bool:
    """Return whether the latest turn began with the same user message and has no reply yet."""
    if digest is None:
        return False
    row = turns.get(connection, window.session_id, window.turn)
    return row is not None and row["ended"] is None and row["request"] == digest


def _is_all_sent(state: WindowState, request: TurnRequest) -> bool:
    """Return whether every piece was sent, with the same prefix, and no rewrite is needed."""
    is_new = any(piece.place is None for piece in state.pieces)
    return not (is_new or state.window.must_rewrite or request.changed_parts(state.window))


def _check_waits_for_reply(connection: Connection, state: WindowState) -> None:
    """Raise if nothing waits for a reply: the latest piece, if any, is a reply without a pause."""
    if state.pieces and state.pieces[-1].phase is not Phase.REPLY:
        return
    row = turns.get(connection, state.window.session_id, state.window.turn_ended)
    if row is None or row["stop_reason"] != "pause_turn":
        raise field_error(
            "user_message", "needed: there is nothing in the conversation that waits for a reply"
        )


def _take_changes(
    window: Window, request: TurnRequest, bounds: Bounds
) -> tuple[Window, Bounds, tuple[Reason, ...]]:
    """Return window and bounds with the prefix of the request, and which of its parts changed."""
    reasons = request.changed_parts(window)
    if reasons:
        window = _rebuild_prefix(window, request, bounds)
        bounds = bounds.with_prefix(window.system_raw)
    return window, bounds, reasons


def _rewrite_if_needed(
    connection: Connection,
    state: WindowState,
    request: TurnRequest,
    reasons: tuple[Reason, ...],
    now: float,
) -> tuple[WindowState, tuple[Reason, ...]]:
    """Rewrite the window if the prefix changed, a user edit waits, or the prompt is too large.

    Return the state, and the reasons, with those of the prefix (`reasons`) first; the first
    request of a session is no rewrite.
    """
    bounds = state.bounds
    plan = state.plan(connection)
    state = replace(state, window=_with_band(state.window, plan, bounds))
    window = state.window
    if window.must_rewrite:
        reasons += (Reason.EDITS,)
    if state.used > bounds.plan_limit:
        reasons += (Reason.SIZE,)
    if request.endpoint.has(Feature.ALTERNATION) and _lacks_reply(state):
        reasons += (Reason.ORDER,)
    if not reasons and window.turn > 1:
        state, reasons = _with_payoff(connection, state, plan, request, now)
        window = state.window
    if not reasons:
        return state, ()
    if not plan.fits:
        raise BudgetError(
            f"system prompt, tools, pinned results and the request need {plan.total:,} tokens; "
            f"the prompt may have {bounds.plan_limit:,}. Raise the total, shorten the request, "
            "or unpin results."
        )
    if window.epoch == 0:
        window = replace(window, epoch=1, warned=window.band)
        return replace(state, window=_rebuild_prefix(window, request, bounds)), ()
    return _rewrite(connection, state, request, plan), reasons


def _with_payoff(
    connection: Connection, state: WindowState, plan: Plan, request: TurnRequest, now: float
) -> tuple[WindowState, tuple[Reason, ...]]:
    """Return the state, and a reason for a rewrite if one pays now."""
    window, bounds = state.window, state.bounds
    rates = cache_rates(request.model, request.endpoint.provider)
    if rates is None:
        return state, ()
    found = payoff(state.pieces, state.used, plan, rates)
    last = turns.get(connection, window.session_id, window.turn - 1)
    if last is not None and now - last["begun"] > CACHE_SECONDS:
        return state, (Reason.COLD,) if found.is_worth_it_cold else ()
    carried = window.carried + found.carrying
    reasons = (Reason.COST,) if found.is_due(carried, bounds.limits.patience) else ()
    return replace(state, window=replace(window, carried=carried)), reasons


def _lacks_reply(state: WindowState) -> bool:
    """Return whether the latest message that was sent had no reply, as after an abort."""
    sent = [piece for piece in state.pieces if piece.place is not None]
    return bool(sent) and sent[-1].phase is not Phase.REPLY


def _rebuild_prefix(window: Window, request: TurnRequest, bounds: Bounds) -> Window:
    """Rebuild the system text and tool schemas with the current warning and hints."""
    remaining = max(1, bounds.prompt_limit - window.kept)
    system = system_with_warning(request.system_blocks(), window, bounds)
    per_tool, default = bounds.limits.per_tool, bounds.limits.per_tool_default
    tools = schemas(request.offers, lambda name: min(per_tool.get(name, default), remaining))
    return replace(
        window,
        model=request.model,
        endpoint=request.endpoint.as_text(),
        client_system=valid_json(request.system),
        tool_set=tool_set(request.offers),
        system=valid_json(system),
        tools=valid_json(tools),
        system_raw=prefix_estimate(system, tools, bounds.family),
    )


def _with_band(window: Window, plan: Plan, bounds: Bounds) -> Window:
    """Return the window with `kept`, its tokens after the planned rewrite, and with its band."""
    remaining = bounds.prompt_limit - plan.total
    marks = bands.thresholds(bounds.limits.total, bounds.limits.warning_threshold)
    band = bands.band_after(Band(window.band), remaining, marks)
    return replace(window, band=str(band), kept=plan.total)


def _rewrite(
    connection: Connection, state: WindowState, request: TurnRequest, plan: Plan
) -> WindowState:
    """Apply the plan and begin a new epoch."""
    window, bounds = state.window, state.bounds
    stored_pieces.set_states(connection, window.session_id, plan.states)
    pieces = with_states(state.pieces, plan.states)
    head = _head(connection, replace(state, pieces=pieces), plan.lines)
    window = replace(
        _rebuild_prefix(replace(window, warned=window.band), request, bounds),
        epoch=window.epoch + 1,
        next_place=0,
        head=head,
        head_raw=head_estimate(head, bounds.family),
        must_rewrite=0,
        noticed=0,
        carried=0,
    )
    return WindowState(window, bounds, pieces)


def _head(connection: Connection, state: WindowState, lines_allowance: int) -> str | None:
    """Return the text before the first message: lines of evicted turns, and the index of names."""
    session_id, bounds = state.window.session_id, state.bounds
    lines = evicted_lines(connection, session_id, lines_allowance, bounds.cost)
    if not bounds.index_limit:
        return lines
    sent = assemble(_contents(connection, session_id, state.pieces), head=lines).messages
    index = write_index(connection, session_id, texts_of(sent), bounds.index_limit, bounds.cost)
    return "\n\n".join(filter(None, (lines, index))) or None


def _assemble(
    connection: Connection, state: WindowState, *, whole: bool
) -> tuple[WindowState, Assembly]:
    """Return the messages to send, the new ones or all if `whole`, and the state that has them."""
    window, session_id = state.window, state.window.session_id
    if whole:
        calls.clear_places(connection, session_id)
        segments.clear_places(connection, session_id)
        pieces = [replace(piece, place=None, wish=None) for piece in state.pieces]
        state = replace(state, pieces=pieces)
    if whole or window.left_window is None:
        saved = stored_pieces.tokens_saved(connection, session_id, state.bounds.calibration)
        window = replace(window, left_window=saved)
    unsent = [piece for piece in state.pieces if piece.place is None]
    assembly = assemble(
        _contents(connection, session_id, unsent),
        head=window.head if whole else None,
        first_place=window.next_place,
    )
    stored_pieces.set_places(connection, session_id, assembly.places)
    used = state.used
    window = replace(
        window,
        next_place=assembly.next_place,
        in_prompt=used,
        kept=min(window.kept, used),
        least=state.least,
        turn_tokens=0,
    )
    return replace(state, window=window), assembly


def _contents(
    connection: Connection, session_id: str, pieces: Iterable[Piece]
) -> Iterator[tuple[Piece, Content]]:
    """Yield pieces, each with its role and its blocks."""
    for piece in pieces:
        yield piece, stored_pieces.load_content(connection, session_id, piece)


def _insert_turn(
    connection: Connection, window: Window, digest: bytes | None, begun: float
) -> None:
    raw, exact = stored_pieces.raw_and_exact(connection, window.session_id)
    turns.insert(
        connection,
        window.session_id,
        window.turn,
        epoch=window.epoch,
        model=window.model or "",
        provider=stored_endpoint(window.endpoint).provider,
        raw=raw + window.system_raw + window.head_raw,
        exact=exact,
        request=digest,
        begun=begun,
    )
