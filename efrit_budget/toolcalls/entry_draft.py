"""Prepare the entry of a call before the transaction that writes it.

Delivering a result takes long, and what a tool wrote for it may take longer still. So it is done
while nobody waits: a draft is made from the window as it stands, and written only if the window
is still so.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, replace
from pathlib import Path

from efrit_budget.budget.plain import dearest
from efrit_budget.characters import one_line_each
from efrit_budget.conversation import calls, tool_uses, windows
from efrit_budget.conversation.compressed_line import compressed_line
from efrit_budget.conversation.pieces import PieceState
from efrit_budget.conversation.tool_call import CallEntry, ToolCall
from efrit_budget.conversation.windows import Window
from efrit_budget.errors import Json
from efrit_budget.results import store as results
from efrit_budget.results.body import Body
from efrit_budget.results.delivery import Delivery, Terms, deliver, with_footer
from efrit_budget.results.marks import own
from efrit_budget.results.pages import Cost
from efrit_budget.results.sound import sound_text
from efrit_budget.results.store import Packed
from efrit_budget.results.tokens import handle
from efrit_budget.sessions.store import Session
from efrit_budget.toolcalls.allowance import Grant
from efrit_budget.tools.base import Outcome, Status, Stored


@dataclass(frozen=True)
class Produced:
    """What a tool call produced."""

    outcome: Outcome
    summary: str
    """What its compressed line keeps of it."""
    lisp: str | None = None
    todos: Json = None


@dataclass(frozen=True)
class EndedCall:
    """A call that has ended_call, with everything needed to deliver it."""

    session: Session
    call: ToolCall
    produced: Produced
    result: Packed | Body
    """What is to be stored, ready for it; or what is stored already."""
    body: Body
    """The whole result."""
    grant: Grant

    @property
    def outcome(self) -> Outcome:
        """Return the outcome of the tool."""
        return self.produced.outcome


class EntryDraft:
    """The entry of one call for the window at one moment."""

    def __init__(self, connection: sqlite3.Connection, ended_call: EndedCall) -> None:
        self._ended_call = ended_call
        self._window = windows.load(connection, ended_call.session.id)
        self._stored = ended_call.outcome.stored or Stored(0)
        self._blob = self._find_blob(connection)
        self.number = self._window.next_number if self._is_new else self._stored.number
        self._changed = self._changed_sources()
        self._delivery = self._deliver()
        self._full_copy = self._find_full_copy(connection)
        self.entry = self._make_entry()

    @property
    def _is_new(self) -> bool:
        """Return whether the result is to be stored."""
        return isinstance(self._ended_call.result, Packed)

    def _find_blob(self, connection: sqlite3.Connection) -> str:
        result = self._ended_call.result
        if isinstance(result, Packed):
            return result.digest
        return results.blob_of(connection, self._ended_call.session.id, self._stored.number)

    # Writing it

    def is_current(self, connection: sqlite3.Connection, window: Window) -> bool:
        """Return whether the window is still as it was when the draft was made."""
        return (
            _figures(window) == _figures(self._window)
            and (not self._is_new or window.next_number == self.number)
            and self._find_blob(connection) == self._blob
            and self._find_full_copy(connection) == self._full_copy
        )

    def write(
        self, connection: sqlite3.Connection, window: Window, row: sqlite3.Row | None
    ) -> None:
        """Write the entry, and what it changes of the window.

        A result that comes when the conversation has gone on without it stands outside.
        """
        call = self._ended_call.call
        if row is not None and tool_uses.is_answered(row):
            tool_uses.set_aside(connection, call.session_id, call.tool_use_id)
            row = None
        is_late = _is_late(connection, call, row)
        window = window.advance_clock()
        in_window = not is_late and _enters_window(window, row)
        if in_window:
            cost = self.entry.tokens + self._ended_call.grant.bounds.around_a_result
            window = replace(window, turn_tokens=window.turn_tokens + cost)
        window = self._keep_result(connection, window)
        state = PieceState.FULL if in_window else PieceState.GONE
        calls.insert(connection, call, self.entry, window.clock, state)
        windows.save_use(connection, window)
        if is_late:
            self._note_late_result(connection)

    def _keep_result(self, connection: sqlite3.Connection, window: Window) -> Window:
        """Store a new result under its number; count a use of one that was stored before."""
        result, session_id = self._ended_call.result, window.session_id
        if self._full_copy is not None and self.entry.same_as is not None:
            calls.count_use(connection, session_id, self._full_copy, window.clock)
        if not isinstance(result, Packed):
            calls.count_use(connection, session_id, self.number, window.clock)
            return window
        results.put(connection, session_id, self.number, self._ended_call.call.tool, result)
        return replace(window, next_number=self.number + 1)

    def _note_late_result(self, connection: sqlite3.Connection) -> None:
        name, call = handle(self.number), self._ended_call.call
        line = own(f"[{name}: its result came late; recall_result {name} brings it]")
        tool_uses.point_to_late_result(connection, call.session_id, call.tool_use_id, line)

    # Making it

    def _make_entry(self) -> CallEntry:
        ended_call, body = self._ended_call, self._ended_call.body
        delivery, same_as = self._delivery_or_same()
        short = self._compressed_text(delivery, same_as)
        message, lisp = ended_call.outcome.message, ended_call.produced.lisp
        shows_content = same_as is None and delivery.end > self._stored.offset
        return CallEntry(
            status=str(ended_call.outcome.status),
            message=None if message is None else sound_text(message),
            number=self.number,
            page_start=delivery.start,
            page_end=delivery.end,
            delivered=delivery.text,
            page=delivery.page,
            tokens=delivery.tokens,
            exact=self._content_tokens(body) if shows_content else 0,
            raw=ended_call.grant.bounds.raw(delivery.text),
            compressed=short,
            compressed_raw=ended_call.grant.bounds.raw(short),
            same_as=same_as,
            lisp=None if lisp is None else sound_text(lisp),
            todos=ended_call.produced.todos,
        )

    def _content_tokens(self, body: Body) -> int:
        """Return the cost of blocks shown beside the text."""
        return body.content_tokens if self._stored.offset == 0 else 0

    def _notes(self) -> tuple[str, ...]:
        changed = self._changed
        change_notes = (f"Changed since this was stored: {', '.join(changed)}.",) if changed else ()
        return tuple(
            one_line_each(sound_text(note))
            for note in self._ended_call.outcome.notes + change_notes
        )

    def _changed_sources(self) -> list[str]:
        """Return the source files that changed since the result was stored."""
        if self._ended_call.outcome.stored is None:
            return []
        root = Path(self._ended_call.session.root)
        return [source.path for source in self._ended_call.body.sources if source.changed(root)]

    def _deliver(self) -> Delivery:
        body, outcome = self._ended_call.body, self._ended_call.outcome
        terms = self._terms(self._content_tokens(body))
        terms = replace(terms, budget_line=outcome.budget_line)
        delivery = deliver(body, self.number, self._stored.offset, terms, self._notes())
        if self._changed:
            delivery = replace(delivery, page=delivery.page | {"changed_since": self._changed})
        return delivery

    def _terms(self, extra_cost: int) -> Terms:
        """Return the constraints for delivering the result.

        Where `max_tokens` is asked for, it is kept however tokens are counted.
        """
        window, bounds, grant = self._window, self._ended_call.grant.bounds, self._ended_call.grant
        remaining = bounds.prompt_limit - window.in_prompt - window.turn_tokens
        if remaining < grant.tokens:  # what is left then is what the next compaction leaves
            remaining = max(remaining, bounds.prompt_limit - window.kept - window.turn_tokens)
        counted = _with_extra(bounds.cost, extra_cost)
        rough = _with_extra(bounds.rough, extra_cost)
        asked_for = "max_tokens" in self._ended_call.call.arguments
        return Terms(
            self._ended_call.session.id,
            grant.tokens,
            counted,
            remaining,
            grant.pressed,
            price=dearest(counted) if asked_for else None,
            rough=dearest(rough) if asked_for else rough,
        )

    def _find_full_copy(self, connection: sqlite3.Connection) -> int | None:
        """Find the result that stands in the window with this very text in full."""
        delivery = self._delivery
        if self._ended_call.outcome.status is not Status.SUCCESS or delivery.end == delivery.start:
            return None
        return calls.find_full_copy(
            connection, self._window, self._blob, delivery.start, delivery.end
        )

    def _delivery_or_same(self) -> tuple[Delivery, int | None]:
        """Return a "Same as" line if the window shows this text in full already."""
        delivery, full_copy = self._delivery, self._full_copy
        if full_copy is None:
            return delivery, None
        line = f"Same as {handle(full_copy)}, which is in the window in full."
        text, tokens = with_footer(
            "\n".join(map(own, (line, *self._notes()))), self._terms(extra_cost=0)
        )
        if tokens >= delivery.tokens:
            return delivery, None
        return replace(delivery, text=text, tokens=tokens), full_copy

    def _compressed_text(self, delivery: Delivery, same_as: int | None) -> str:
        """Return the compressed line, never longer than the delivered text.

        What was only a line that said where the text stands says nothing of that any more.
        """
        if same_as is not None:
            name = handle(self.number)
            same = "" if same_as == self.number else f"same as {handle(same_as)}; "
            return own(f"[{name}: {same}recall_result {name} brings it back]")
        short = compressed_line(self.number, delivery.tokens, self._ended_call.produced.summary)
        if self._ended_call.grant.bounds.cost(short) >= delivery.tokens:
            return delivery.text
        return short


def _with_extra(cost: Cost, extra_cost: int) -> Cost:
    """Return the cost of a text together with blocks beside it."""
    return (lambda text: cost(text) + extra_cost) if extra_cost else cost


def _figures(window: Window) -> tuple[int, ...]:
    """Return the figures of a window that the delivered text states."""
    return window.turn, window.in_prompt, window.kept, window.turn_tokens


def _enters_window(window: Window, row: sqlite3.Row | None) -> bool:
    """Return whether the next request carries the result."""
    is_announced = row is not None and row["turn"] is not None
    return is_announced or window.turn > window.turn_ended or not window.turn


def _is_late(connection: sqlite3.Connection, call: ToolCall, row: sqlite3.Row | None) -> bool:
    """Return whether the conversation has another answer to this call."""
    is_announced = row is not None and row["turn"] is not None
    return not is_announced and tool_uses.is_set_aside(
        connection, call.session_id, call.tool_use_id
    )
