"""Prepare the entry of a call before the transaction that writes it.

To deliver a result takes long. So a draft of the entry is made while other calls may write, and it
is written only if the window has not changed meanwhile.
"""

import json
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path

from efrit_budget.budget.plain import dearest
from efrit_budget.characters import one_line_each, sound_text
from efrit_budget.conversation import calls, tool_uses, windows
from efrit_budget.conversation.compressed_line import compressed_line, line_of_same
from efrit_budget.conversation.pieces import PieceState
from efrit_budget.conversation.tool_call import CallEntry, ToolCall
from efrit_budget.conversation.windows import Window
from efrit_budget.errors import Json, JsonObject
from efrit_budget.results import store as results
from efrit_budget.results.body import Body
from efrit_budget.results.delivery import Delivery, deliver
from efrit_budget.results.footer import Terms, with_footer
from efrit_budget.results.marks import own
from efrit_budget.results.pages import Cost
from efrit_budget.results.store import Packed
from efrit_budget.results.tokens import handle
from efrit_budget.sessions.rows import Session
from efrit_budget.toolcalls.allowance import Allowance
from efrit_budget.tools.base import Outcome, Status
from efrit_budget.tools.sizes import singular

FIGURES = attrgetter("turn", "in_prompt", "kept", "turn_tokens")
"""The figures of a window that the delivered text states."""
NEARLY_PERCENT = 90
"""The share of a page that has to be in the window for the page to end where that part does."""


@dataclass(frozen=True)
class Produced:
    """The outcome of a tool call, and what is stored beside it."""

    outcome: Outcome
    summary: str
    """The summary for the compressed line of the result."""
    lisp: str | None = None
    todos: Json = None
    gist: str | None = None
    """What came of the call in a few words for the person; None: its items are counted."""
    ending: str | None = None
    """`denied` or `stopped` if the call did not run to its end."""


@dataclass(frozen=True)
class EndedCall:
    """A call that has ended, with everything needed to deliver its result."""

    session: Session
    call: ToolCall
    produced: Produced
    allowance: Allowance
    body: Body
    """The whole result."""
    new: Packed | None
    """The result ready to be stored; None where it is stored already."""


class EntryDraft:
    """The entry of one call that has ended, made for the window as it is at this moment."""

    def __init__(self, connection: sqlite3.Connection, ended: EndedCall) -> None:
        stored = ended.produced.outcome.stored
        self._ended = ended
        self._window = windows.load(connection, ended.session.id)
        self._offset = 0 if stored is None else stored.offset
        self.number = self._window.next_number if stored is None else stored.number
        self._blob = ended.new.digest if ended.new else self._stored_blob(connection)
        notes, changed = ended.produced.outcome.notes, []
        if stored is not None:
            root = Path(ended.session.root)
            changed = [source.path for source in ended.body.sources if source.changed(root)]
        if changed:
            notes += (f"Changed since this was stored: {', '.join(changed)}.",)
        self._notes = tuple(map(one_line_each, notes))
        budget_line = ended.produced.outcome.budget_line
        terms = self._terms(0 if self._offset else ended.body.content_tokens, budget_line)
        self._delivery = self._deliver(connection, terms)
        if changed:
            self._delivery.page["changed_since"] = changed
        sought = self._blob if self._may_be_same() else None
        self._sought = (sought, self._delivery.start, self._delivery.end)
        self._full_copy = calls.find_full_copy(connection, self._window, *self._sought)
        self.entry = self._make_entry()

    def _stored_blob(self, connection: sqlite3.Connection) -> str:
        """Return the hash of the text of a stored result; raise if the result was deleted."""
        row = results.get_row(connection, self._ended.session.id, self.number)
        return str(row["blob"])

    def _deliver(self, connection: sqlite3.Connection, terms: Terms) -> Delivery:
        """Return the page; one that the window has nearly whole ends where that one does.

        Footers of other lengths make pages of the same text end at different places.
        """
        body = self._ended.body
        delivery = deliver(body, self.number, self._offset, terms, self._notes)
        start, end = delivery.start, delivery.end
        if not self._may_be_same() or end == len(body.text):
            return delivery
        least = start + (end - start) * NEARLY_PERCENT // 100
        shown = calls.find_shown_end(connection, self._window, self._blob, start, least)
        if shown is None or shown >= end:
            return delivery
        cut = replace(body, opening=shown)
        return deliver(cut, self.number, self._offset, terms, self._notes)

    def _may_be_same(self) -> bool:
        """Return whether the entry may be a "Same as" line.

        Without turns, the client keeps the window itself and may have removed what it recalls.
        """
        outcome = self._ended.produced.outcome
        is_recall = outcome.stored is not None
        return outcome.status is Status.SUCCESS and not (is_recall and self._window.turn == 0)

    # Writing the entry

    def is_current(self, connection: sqlite3.Connection, window: Window) -> bool:
        """Return whether the window is still as it was when the draft was made."""
        return (
            FIGURES(window) == FIGURES(self._window)
            and (
                window.next_number == self.number
                if self._ended.new
                else self._stored_blob(connection) == self._blob
            )
            and calls.find_full_copy(connection, window, *self._sought) == self._full_copy
        )

    def write(
        self, connection: sqlite3.Connection, window: Window, row: sqlite3.Row | None
    ) -> None:
        """Write the entry and the figures of the window that it changes; `row` is the call's row.

        A result that comes after the conversation has gone on without it stays out of the window.
        """
        call, new, clock = self._ended.call, self._ended.new, window.clock + 1
        bounds = self._ended.allowance.bounds
        if row is not None and row["ended"] is not None:  # it was answered without this result
            tool_uses.set_aside(connection, call.session_id, call.tool_use_id)
            row = None
        is_announced = row is not None and row["turn"] is not None
        is_late = not is_announced and tool_uses.is_set_aside(
            connection, call.session_id, call.tool_use_id
        )
        is_between_turns = window.turn and window.turn <= window.turn_ended
        in_window = is_announced or not (is_late or is_between_turns)
        if self.entry.same_as is not None:
            calls.count_use(connection, call.session_id, self.entry.same_as, clock)
        if new is None:
            calls.count_use(connection, call.session_id, self.number, clock)
        else:
            results.put(connection, call.session_id, self.number, call.tool, new)
        state = PieceState.FULL if in_window else PieceState.GONE
        ended: JsonObject = {"ended": time.time(), "state": state, "last_use": clock}
        calls.save(connection, call, **vars(self.entry), **ended)
        cost = self.entry.tokens + bounds.around_a_result
        windows.save_use(
            connection,
            call.session_id,
            clock=clock,
            next_number=window.next_number + (new is not None),
            turn_tokens=window.turn_tokens + (cost if in_window else 0),
        )
        if is_late:
            name = handle(self.number)
            line = own(f"[{name}: its result came late; recall_result {name} brings it]")
            tool_uses.point_to_late_result(connection, call, line, bounds.family)

    # Making the entry

    def _make_entry(self) -> CallEntry:
        """Return the entry, a "Same as" line if the window shows this text in full already."""
        ended, produced, delivery = self._ended, self._ended.produced, self._delivery
        same_as = None
        if self._full_copy is not None:
            line = f"Same as {handle(self._full_copy)}, which is in the window in full."
            lines = "\n".join(map(own, (line, *self._notes)))
            text, tokens = with_footer(lines, self._terms())
            if tokens < delivery.tokens:
                delivery, same_as = replace(delivery, text=text, tokens=tokens), self._full_copy
        if same_as is not None:
            compressed = line_of_same(self.number, same_as)
        else:
            compressed = compressed_line(self.number, delivery.tokens, produced.summary)
            if ended.allowance.bounds.cost(compressed) >= delivery.tokens:
                compressed = delivery.text
        message, family = produced.outcome.message, ended.allowance.bounds.family
        shows_content = self._offset == 0 and same_as is None and delivery.end > 0
        return CallEntry(
            status=str(produced.outcome.status),
            message=None if message is None else sound_text(message),
            number=self.number,
            page_start=delivery.start,
            page_end=delivery.end,
            delivered=delivery.text,
            page=json.dumps(delivery.page),
            tokens=delivery.tokens,
            exact=ended.body.content_tokens if shows_content else 0,
            raw=family.estimate(delivery.text),
            compressed=compressed,
            compressed_raw=family.estimate(compressed),
            same_as=same_as,
            lisp=None if produced.lisp is None else sound_text(produced.lisp),
            todos=None if produced.todos is None else json.dumps(produced.todos),
            gist=sound_text(self._count_items() if produced.gist is None else produced.gist),
            ending=produced.ending,
        )

    def _count_items(self) -> str:
        """Return the number of items, such as "3 of 12 matches"; "" for a text shown whole."""
        body, page = self._ended.body, self._delivery.page
        shown, total = page["returned"], page["total"]
        if self._ended.produced.outcome.status is not Status.SUCCESS:
            return ""
        if body.data.get(body.noun) == []:
            return f"no {body.noun}"
        noun = singular(body.noun) if total == 1 else body.noun
        if shown < total:
            return f"{shown:,} of {total:,} {noun}"
        return f"{total:,} {noun}" if body.items else ""

    def _terms(
        self, content_tokens: int = 0, budget_line: Callable[[int], str] | None = None
    ) -> Terms:
        """Return the constraints for delivering the result beside images of `content_tokens`.

        If the call has `max_tokens`, the result keeps within it by the plain estimate, too.
        """
        window, allowance = self._window, self._ended.allowance
        bounds = allowance.bounds
        remaining = bounds.prompt_limit - window.in_prompt - window.turn_tokens
        if remaining < allowance.tokens:  # count with what the next rewrite leaves free
            remaining = max(remaining, bounds.prompt_limit - window.kept - window.turn_tokens)
        cost: Cost = bounds.cost
        rough: Cost = bounds.rough
        if content_tokens:
            cost, rough = _with_more(cost, content_tokens), _with_more(rough, content_tokens)
        price = None
        if "max_tokens" in self._ended.call.arguments:
            price, rough = dearest(cost), dearest(rough)
        return Terms(
            self._ended.session.id,
            allowance.tokens,
            cost,
            remaining,
            allowance.pressed,
            budget_line,
            price,
            rough,
        )


def _with_more(cost: Cost, tokens: int) -> Cost:
    """Return a cost function that adds `tokens` to the cost of each text."""
    return lambda text: cost(text) + tokens
