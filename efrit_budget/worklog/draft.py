"""The entry of a use, made ready before the transaction that writes it.

Delivering a result takes long, and what a tool wrote for it may take longer still. So it is done
while nobody waits: a draft is made from the window as it stands, and written only if the window
is still so.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from efrit_budget.budget.plain import dearest
from efrit_budget.characters import one_line_each
from efrit_budget.errors import Json
from efrit_budget.results import store as results
from efrit_budget.results.body import Body
from efrit_budget.results.delivery import Delivery, Terms, deliver, with_footer
from efrit_budget.results.marks import own
from efrit_budget.results.sound import sound_text
from efrit_budget.results.store import Packed
from efrit_budget.results.tokens import handle
from efrit_budget.sessions.store import Session
from efrit_budget.tools.base import Outcome, Status, Stored
from efrit_budget.window import record, uses
from efrit_budget.window.frame import Bounds
from efrit_budget.window.record import Window
from efrit_budget.worklog import entries
from efrit_budget.worklog.allowance import Grant
from efrit_budget.worklog.compress import compressed
from efrit_budget.worklog.entries import Entry
from efrit_budget.worklog.use import Use


@dataclass(frozen=True)
class Given:
    """What a call gave, and how it is to be kept."""

    outcome: Outcome
    compressor: Callable[[], str]
    lisp: str | None = None
    todos: Json = None


@dataclass(frozen=True)
class Ending:
    """A use that has ended: what it gave, and what of it may be delivered."""

    session: Session
    use: Use
    given: Given
    result: Packed | Body
    """What is to be stored, ready for it; or what is stored already."""
    body: Body
    """The whole result."""
    summary: str
    """What its tool keeps of it."""
    grant: Grant
    bounds: Bounds

    @property
    def outcome(self) -> Outcome:
        """What the tool gave."""
        return self.given.outcome


class Draft:
    """The entry of one use, as the window stood when it was made."""

    def __init__(self, connection: sqlite3.Connection, ending: Ending) -> None:
        self._ending = ending
        self._window = record.load(connection, ending.session.id)
        self._stored = ending.outcome.stored or Stored(0)
        self._blob = self._find_blob(connection)
        self.number = self._window.next_number if self._is_new else self._stored.number
        self._changed = self._changed_since()
        self._delivery = self._deliver()
        self._shown = self._find_shown(connection)
        self.entry = self._make_entry()

    @property
    def _is_new(self) -> bool:
        """Whether the result is to be stored."""
        return isinstance(self._ending.result, Packed)

    def _find_blob(self, connection: sqlite3.Connection) -> str:
        result = self._ending.result
        if isinstance(result, Packed):
            return result.digest
        return results.blob_of(connection, self._ending.session.id, self._stored.number)

    # Writing it

    def holds(self, connection: sqlite3.Connection) -> bool:
        """Tell whether the window is still as it was when the draft was made."""
        now = record.load(connection, self._ending.session.id)
        return (
            _figures(now) == _figures(self._window)
            and (not self._is_new or now.next_number == self.number)
            and self._find_blob(connection) == self._blob
            and self._find_shown(connection) == self._shown
        )

    def keep(self, connection: sqlite3.Connection, row: sqlite3.Row | None) -> None:
        """Write the entry, and what it changes of the window.

        A result that comes when the conversation has gone on without it stands outside.
        """
        use = self._ending.use
        if row is not None and entries.is_answered(row):
            uses.put_aside(connection, use.session_id, use.tool_use_id)
            row = None
        is_late = _is_late(connection, use, row)
        window = record.load(connection, use.session_id).ticked()
        in_window = not is_late and _comes_into_the_window(window, row)
        if in_window:
            window = replace(window, turn_tokens=window.turn_tokens + self.entry.tokens)
        window = self._keep_result(connection, window)
        entries.keep(connection, use, self.entry, window.clock, in_window=in_window)
        record.save_use(connection, window)
        if is_late:
            self._say_where_it_is(connection)

    def _keep_result(self, connection: sqlite3.Connection, window: Window) -> Window:
        """Store a new result under its number; count a use of one that was stored before."""
        result, session_id = self._ending.result, window.session_id
        if self._shown is not None and self.entry.same_as is not None:
            entries.touch(connection, session_id, self._shown, window.clock)
        if not isinstance(result, Packed):
            entries.touch(connection, session_id, self.number, window.clock)
            return window
        results.put(connection, session_id, self.number, self._ending.use.tool, result)
        return replace(window, next_number=self.number + 1)

    def _say_where_it_is(self, connection: sqlite3.Connection) -> None:
        name, use = handle(self.number), self._ending.use
        line = own(f"[{name}: its result came late; recall_result {name} brings it]")
        uses.say_it_came_late(connection, use.session_id, use.tool_use_id, line)

    # Making it

    def _make_entry(self) -> Entry:
        ending, body = self._ending, self._ending.body
        delivery, same_as = self._or_same()
        short = self._compressed(delivery, same_as)
        message, lisp = ending.outcome.message, ending.given.lisp
        shows_content = same_as is None and delivery.end > self._stored.offset
        return Entry(
            status=str(ending.outcome.status),
            message=None if message is None else sound_text(message),
            number=self.number,
            page_start=delivery.start,
            page_end=delivery.end,
            delivered=delivery.text,
            page=delivery.page,
            tokens=delivery.tokens,
            exact=self._content_tokens(body) if shows_content else 0,
            raw=ending.bounds.raw(delivery.text),
            compressed=short,
            compressed_raw=ending.bounds.raw(short),
            same_as=same_as,
            lisp=None if lisp is None else sound_text(lisp),
            todos=ending.given.todos,
        )

    def _content_tokens(self, body: Body) -> int:
        """What the blocks cost that are shown beside the text."""
        return body.content_tokens if self._stored.offset == 0 else 0

    def _notes(self) -> tuple[str, ...]:
        changed = self._changed
        said = (f"Changed since this was stored: {', '.join(changed)}.",) if changed else ()
        return tuple(one_line_each(sound_text(note)) for note in self._ending.outcome.notes + said)

    def _changed_since(self) -> list[str]:
        """The files that a stored result was made from, and that are others by now."""
        if self._ending.outcome.stored is None:
            return []
        root = Path(self._ending.session.root)
        return [source.path for source in self._ending.body.sources if source.changed(root)]

    def _deliver(self) -> Delivery:
        body, outcome = self._ending.body, self._ending.outcome
        terms = self._terms(self._content_tokens(body))
        terms = replace(terms, budget_line=outcome.budget_line)
        delivery = deliver(body, self.number, self._stored.offset, terms, self._notes())
        if self._changed:
            delivery = replace(delivery, page=delivery.page | {"changed_since": self._changed})
        return delivery

    def _terms(self, shows: int) -> Terms:
        """Under which it is delivered; blocks shown beside the text cost as it does.

        Where `max_tokens` is asked for, it is kept however tokens are counted.
        """
        window, bounds, grant = self._window, self._ending.bounds, self._ending.grant
        cost = bounds.cost

        def cost_of_all(text: str) -> int:
            return cost(text) + shows

        left = bounds.prompt_limit - window.in_prompt - window.turn_tokens
        if left < grant.tokens:  # what is left then is what the next compaction leaves
            left = max(left, bounds.prompt_limit - window.kept - window.turn_tokens)
        counted = cost_of_all if shows else cost
        return Terms(
            self._ending.session.id,
            grant.tokens,
            counted,
            left,
            grant.pressed,
            price=dearest(counted) if "max_tokens" in self._ending.use.arguments else None,
        )

    def _find_shown(self, connection: sqlite3.Connection) -> int | None:
        """Find the result that stands in the window with this very text in full."""
        delivery = self._delivery
        if self._ending.outcome.status is not Status.SUCCESS or delivery.end == delivery.start:
            return None
        return entries.shown_in_full(
            connection, self._window, self._blob, delivery.start, delivery.end
        )

    def _or_same(self) -> tuple[Delivery, int | None]:
        """A text that stands in the window in full already is not sent twice."""
        delivery, shown = self._delivery, self._shown
        if shown is None:
            return delivery, None
        line = f"Same as {handle(shown)}, which is in the window in full."
        text, tokens = with_footer(
            "\n".join(map(own, (line, *self._notes()))), self._terms(shows=0)
        )
        if tokens >= delivery.tokens:
            return delivery, None
        return replace(delivery, text=text, tokens=tokens), shown

    def _compressed(self, delivery: Delivery, same_as: int | None) -> str:
        """What the window keeps of it; never more than what was delivered.

        What was only a line that said where the text stands says nothing of that any more.
        """
        if same_as is not None:
            name = handle(self.number)
            same = "" if same_as == self.number else f"same as {handle(same_as)}; "
            return own(f"[{name}: {same}recall_result {name} brings it back]")
        short = compressed(self.number, delivery.tokens, self._ending.summary)
        if self._ending.bounds.cost(short) >= delivery.tokens:
            return delivery.text
        return short


def _figures(window: Window) -> tuple[int, ...]:
    """What of a window stands in the text that is delivered."""
    return window.turn, window.in_prompt, window.kept, window.turn_tokens


def _comes_into_the_window(window: Window, row: sqlite3.Row | None) -> bool:
    """Whether the next request carries it: announced, about to be, or without turns at all."""
    is_announced = row is not None and row["turn"] is not None
    return is_announced or window.turn > window.turn_ended or not window.turn


def _is_late(connection: sqlite3.Connection, use: Use, row: sqlite3.Row | None) -> bool:
    """Whether the conversation holds another answer to this very use."""
    is_announced = row is not None and row["turn"] is not None
    return not is_announced and uses.is_put_aside(connection, use.session_id, use.tool_use_id)
