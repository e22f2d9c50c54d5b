"""The conversation of a session: its turns and its window."""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from sqlite3 import Connection

from efrit_budget.budget.endpoint import Endpoint, stored_endpoint
from efrit_budget.budget.models import Model
from efrit_budget.conversation import calls, stored_pieces, turns, windows
from efrit_budget.conversation.begin import BegunTurn, TurnRequest, begin
from efrit_budget.conversation.bounds import Bounds, bounds_of
from efrit_budget.conversation.end import ModelReply, end
from efrit_budget.conversation.history import list_turns, transcript
from efrit_budget.conversation.messages import assemble
from efrit_budget.conversation.pieces import Content, Piece
from efrit_budget.conversation.preview import (
    cached_tokens,
    full_results,
    next_prompt,
    preview_reply,
)
from efrit_budget.conversation.prices import cache_loss, session_usage
from efrit_budget.conversation.window_state import WindowState, load_state
from efrit_budget.conversation.windows import Window
from efrit_budget.errors import JsonObject
from efrit_budget.sessions import rows
from efrit_budget.sessions.rows import Session
from efrit_budget.storage.database import Database

ModelNamed = Callable[[str], Model]


class Conversation:
    """Begins and ends turns, each in one transaction, and reports the window."""

    def __init__(
        self, database: Database, model_named: ModelNamed, clock: Callable[[], float] = time.time
    ) -> None:
        self._database = database
        self._model_named = model_named
        self._clock = clock

    def begin(self, session: Session, request: TurnRequest) -> JsonObject:
        """Begin a turn and return the next request."""
        with self._database.writing() as connection:
            rows.update(connection, session.id, touched=time.time())
            window, bounds = self.load(connection, session, request.model, request.endpoint)
            begun_turn = begin(connection, window, request, bounds, self._clock())
            return (
                _begin_reply(begun_turn, bounds)
                | _full_rewrite(connection, begun_turn, bounds)
                | {
                    "left_window": begun_turn.state.window.left_window,
                    "budget": begun_turn.state.snapshot(),
                }
            )

    def preview(self, session: Session, request: TurnRequest, *, caching: bool) -> JsonObject:
        """Return tokens, price and changes of the turn that would begin, without storing it."""
        with self._database.writing() as connection:
            window, bounds = self.load(connection, session, request.model, request.endpoint)
            before = full_results(connection, session.id)
            cached_count = cached_tokens(connection, window, bounds.model) if caching else None
            begun_turn = begin(connection, window, request, bounds, self._clock())
            remaining = full_results(connection, session.id)
            connection.rollback()
        shrinking = [entry for number, entry in before.items() if number not in remaining]
        provider = request.endpoint.provider
        return preview_reply(begun_turn, shrinking, cached_count, provider)

    def next_prompts(
        self, session: Session, models: Sequence[str], endpoint: Endpoint, *, caching: bool
    ) -> dict[str, JsonObject]:
        """Return tokens and price of the window as the next prompt, for each of the models."""
        with self._database.reading() as connection:
            return {
                name: next_prompt(
                    connection,
                    *self.load(connection, session, name, endpoint),
                    endpoint,
                    caching=caching,
                )
                for name in models
            }

    def model(self, name: str, endpoint: Endpoint) -> Model:
        """Return a model as it can be used at an endpoint."""
        return endpoint.limit(self._model_named(name))

    def endpoint(self, session: Session) -> Endpoint:
        """Return the endpoint of the latest request."""
        with self._database.reading() as connection:
            return stored_endpoint(windows.load(connection, session.id).endpoint)

    def end(self, session: Session, reply: ModelReply) -> JsonObject:
        """Store the model's reply; return the budget, and the usage and price of the session."""
        with self._database.writing() as connection:
            rows.update(connection, session.id, touched=time.time())
            window, bounds = self.load(connection, session)
            ended_turn = end(connection, window, reply, bounds, self._clock())
        with self._database.reading() as connection:
            usage = session_usage(connection, session.id, price=True)
            paid_anew = cache_loss(connection, session.id, ended_turn.turn)
        return {
            "turn_id": ended_turn.turn,
            "append": {"messages": ended_turn.messages} if ended_turn.messages else None,
            **usage,
            "paid_anew": paid_anew,
            "budget": ended_turn.state.snapshot(),
        }

    def budget(self, session: Session) -> JsonObject:
        """Return the budget snapshot."""
        with self._database.reading() as connection:
            return load_state(connection, *self.load(connection, session)).snapshot()

    def bounds(self, session: Session, model: str | None, endpoint: Endpoint | None) -> Bounds:
        """Return the bounds for a model at an endpoint, by default those of the latest request."""
        with self._database.reading() as connection:
            return self.load(connection, session, model, endpoint)[1]

    def messages(self, session: Session) -> JsonObject:
        """Return model, system text, tools and messages of the window as they were sent."""
        with self._database.reading() as connection:
            window, bounds = self.load(connection, session)
            pieces = stored_pieces.load_pieces(connection, session.id, bounds.calibration)
            return {
                "epoch": window.epoch,
                "model": window.model,
                "system": json.loads(window.system or "[]"),
                "tools": window.offered_tools(),
                "messages": list(_sent_messages(connection, window, pieces)),
            }

    def transcript(self, session: Session) -> JsonObject:
        """Return all messages, replies and results in order, with thinking and evicted turns."""
        with self._database.reading() as connection:
            return {"turns": list(transcript(connection, session.id))}

    def list_turns(self, session: Session) -> JsonObject:
        """Return the cost and the beginning of each user message, notice and reply."""
        with self._database.reading() as connection:
            window, bounds = self.load(connection, session)
            return {"turns": list_turns(connection, window, bounds.calibration)}

    def status(self, session: Session, *, price: bool) -> JsonObject:
        """Return budget, usage, latest model, time of its turn, todos; with `price` the dollars."""
        with self._database.reading() as connection:
            window = windows.load(connection, session.id)
            return {
                "budget": self.budget(session),
                "model": window.model,
                "provider": stored_endpoint(window.endpoint).provider,
                "last_turn": turns.find_last_time(connection, session.id),
                "todos": calls.find_todos(connection, session.id),
                **session_usage(connection, session.id, price=price),
            }

    def prices(self, sessions: Iterable[Session]) -> dict[str, JsonObject]:
        """Return the usage of each session and its price in dollars, by the ids of the sessions."""
        with self._database.reading() as connection:
            return {
                session.id: session_usage(connection, session.id, price=True)
                for session in sessions
            }

    def count_calls(self) -> dict[str, int]:
        """Return the number of calls of each session that has any."""
        with self._database.reading() as connection:
            return calls.count_by_session(connection)

    def load(
        self,
        connection: Connection,
        session: Session,
        model: str | None = None,
        endpoint: Endpoint | None = None,
    ) -> tuple[Window, Bounds]:
        """Return the window, and its bounds for a model at an endpoint, by default the latest."""
        window = windows.load(connection, session.id)
        wanted = replace(
            window,
            model=window.model if model is None else model,
            endpoint=window.endpoint if endpoint is None else endpoint.as_text(),
        )
        return window, bounds_of(connection, session.limits, wanted, self._model_named)


def measure_again(connection: Connection, state: WindowState, *, comes_back: bool) -> WindowState:
    """Save the sizes of a window after a user edit.

    The next request is a rewrite if an evicted piece came back, or as long as a piece that was
    sent has a user edit that is not applied yet.
    """
    if comes_back or state.window.must_rewrite == windows.CAME_BACK:
        must_rewrite = windows.CAME_BACK
    else:
        must_rewrite = int(any(piece.wish and piece.place is not None for piece in state.pieces))
    state = replace(state, window=replace(state.window, must_rewrite=must_rewrite))
    state = state.with_sizes(connection)
    windows.save(connection, state.window)
    return state


def _begin_reply(begun_turn: BegunTurn, bounds: Bounds) -> JsonObject:
    window, messages = begun_turn.state.window, begun_turn.assembly.messages
    reasons = [str(reason) for reason in begun_turn.reasons]
    appended = {"messages": messages} if messages and not reasons else None
    return {
        "turn_id": window.turn,
        "epoch": window.epoch,
        "system": json.loads(window.system or "[]"),
        "tools": window.offered_tools(),
        "rewrite": {"messages": messages} if reasons else None,
        "rewrite_reasons": reasons,
        "append": appended,
        "max_tokens": bounds.reply_limit,
        "model": asdict(bounds.model),
        "notes": list(begun_turn.notes),
    }


def _full_rewrite(connection: Connection, begun_turn: BegunTurn, bounds: Bounds) -> JsonObject:
    """Return all messages as a rewrite for a client that repeats its request, else nothing."""
    if not begun_turn.sent_again or begun_turn.rewritten:
        return {}
    window = begun_turn.state.window
    pieces = stored_pieces.load_pieces(connection, window.session_id, bounds.calibration)
    messages = list(_sent_messages(connection, window, pieces))
    return {"rewrite": {"messages": messages}, "append": None}


def _sent_messages(
    connection: Connection, window: Window, pieces: Sequence[Piece]
) -> Iterator[JsonObject]:
    """Yield the messages of the window as they were sent, without user edits since then."""
    by_place: dict[int, list[tuple[Piece, Content]]] = {}
    for piece in pieces:
        if piece.place is not None:
            sent = replace(piece, state=piece.sent_state)
            content = stored_pieces.load_content(connection, window.session_id, sent)
            by_place.setdefault(piece.place, []).append((sent, content))
    for place in range(window.next_place):
        head = window.head if place == 0 else None
        yield from assemble(by_place.get(place, ()), head=head).messages
