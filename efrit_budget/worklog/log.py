"""The work log of a session: what each call gave, stored whole and delivered in part."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from efrit_budget.budget.models import Model
from efrit_budget.budget.plain import dearest
from efrit_budget.errors import Json, SessionNotFoundError
from efrit_budget.results import store as results
from efrit_budget.results.body import Body
from efrit_budget.results.delivery import Delivery, Terms, deliver, with_footer
from efrit_budget.results.sound import sound_text
from efrit_budget.results.store import Packed, RecentBodies
from efrit_budget.results.tokens import Place, handle
from efrit_budget.sessions.store import Session
from efrit_budget.storage.database import Database
from efrit_budget.storage.owner import Owner
from efrit_budget.tools.base import Outcome, Status, Stored
from efrit_budget.window import record, uses
from efrit_budget.window.frame import bounds_of
from efrit_budget.worklog import entries
from efrit_budget.worklog.allowance import Grant, Standing, announced
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
class Further:
    """How a tool goes on behind what it served."""

    tool: str
    more: dict[str, Json]


class WorkLog:
    """Keeps what each tool use gave; every write is one transaction."""

    def __init__(self, database: Database, model_named: Callable[[str], Model]) -> None:
        self._database = database
        self._model_named = model_named
        self._recent = RecentBodies()
        self._lock = threading.Lock()
        self._running: set[tuple[str, str]] = set()

    @cached_property
    def _owner(self) -> Owner:
        return Owner(self._database.path)

    def find(self, use: Use) -> dict[str, Json] | None:
        """The envelope this use gave before; None if it has not ended."""
        with self._database.reading() as connection:
            row = entries.row_of(connection, use)
            if row is None or not entries.has_result(row):
                return None
            return entries.envelope_of(connection, row)

    @contextmanager
    def starting(self, use: Use) -> Iterator[bool]:
        """Note that a use with effects runs here for as long as the block; false if it did before.

        Who sees it noted, and asks whether it runs, waits until it counts as running.
        """
        key = (use.session_id, use.tool_use_id)
        with self._lock:
            with self._database.writing() as connection:
                starts = entries.begin(connection, use, self._owner.name)
            if starts:
                self._running.add(key)
        try:
            yield starts
        finally:
            if starts:
                self._running.discard(key)

    def take_back(self, use: Use) -> None:
        """Undo `begin`: the use only asked a question."""
        with self._database.writing() as connection:
            entries.take_back(connection, use)

    def still_runs(self, use: Use) -> bool:
        """Whether a use that was started, and has not ended, runs here or in another sidecar."""
        with self._database.reading() as connection:
            row = entries.row_of(connection, use)
        if row is None or entries.has_result(row):
            return False
        if row["owner"] != self._owner.name:
            return self._owner.alive(row["owner"])
        with self._lock:
            return (use.session_id, use.tool_use_id) in self._running

    def holds(self, session: Session, number: int) -> bool:
        """Whether a result of that number is stored."""
        with self._database.reading() as connection:
            return results.holds(connection, session.id, number)

    def further(self, session: Session, place: Place) -> Further | None:
        """How the tool that gave a result goes on behind it, where that is what is asked for."""
        with self._database.reading() as connection:
            body = self._recent.get(connection, session.id, place.number)
            if body.more is None or place.offset < len(body.text):
                return None
            return Further(results.tool_of(connection, session.id, place.number), body.more)

    def standing(self, session: Session) -> Standing:
        """How the session's budget stands for a call."""
        with self._database.reading() as connection:
            window = record.load(connection, session.id)
            bounds = bounds_of(connection, session.limits, window.model, self._model_named)
            return Standing(window, bounds, announced(connection, session.id))

    def finish(
        self, session: Session, use: Use, given: Given, grant: Grant, standing: Standing
    ) -> dict[str, Json]:
        """Store what a use gave, and deliver what of it the grant allows.

        Where the use gave something before, that stands.
        """
        result = self._result(session, given.outcome)
        with self._database.writing() as connection:
            row = entries.row_of(connection, use)
            if row is not None and entries.has_result(row):
                return entries.envelope_of(connection, row)
            _touch(connection, session.id)
            keeper = _Keeper(
                connection, session, use, given, result=result, grant=grant, standing=standing
            )
            envelope = keeper.keep(row)
            if isinstance(result, Packed):
                self._recent.keep(connection, session.id, keeper.number, result.body)
            return envelope

    def _result(self, session: Session, outcome: Outcome) -> Packed | Body:
        """What is to be stored, ready for it; or what is stored already."""
        with self._database.reading() as connection:
            if outcome.stored is not None:
                return self._recent.get(connection, session.id, outcome.stored.number)
            whole = outcome.whole
            return results.packed(connection, replace(whole, text=sound_text(whole.text)))

    def close(self) -> None:
        """Give up what marks this process as alive."""
        if "_owner" in self.__dict__:
            self._owner.close()


def _touch(connection: sqlite3.Connection, session_id: str) -> None:
    """Note that the session was used; it may have been deleted while the tool ran."""
    changed = connection.execute(
        "UPDATE sessions SET touched = ? WHERE id = ?", (time.time(), session_id)
    )
    if not changed.rowcount:
        raise SessionNotFoundError(
            f"session {session_id!r} was deleted", data={"session_id": session_id}
        )


class _Keeper:
    """Makes the entry of one use; the window it reads is that of its own transaction."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        session: Session,
        use: Use,
        given: Given,
        *,
        result: Packed | Body,
        grant: Grant,
        standing: Standing,
    ) -> None:
        self._connection = connection
        self._session = session
        self._use = use
        self._given = given
        self._result = result
        self.number = 0
        self._grant = grant
        self._bounds = standing.bounds
        self._window = record.load(connection, session.id).ticked()

    def keep(self, row: sqlite3.Row | None) -> dict[str, Json]:
        """Write the entry, and what it changes of the window; gives the envelope.

        A result that comes when the conversation has gone on without it stands outside.
        """
        if row is not None and entries.is_answered(row):
            uses.put_aside(self._connection, self._session.id, self._use.tool_use_id)
            row = None
        in_window = self._comes_into_the_window(row)
        entry, body = self._entry()
        if in_window:
            spent = self._window.turn_tokens + entry.tokens
            self._window = replace(self._window, turn_tokens=spent)
        entries.keep(self._connection, self._use, entry, self._window.clock, in_window=in_window)
        record.save_use(self._connection, self._window)
        if self._is_late(row):
            self._say_where_it_is(entry)
        return entries.envelope(entry, body)

    def _comes_into_the_window(self, row: sqlite3.Row | None) -> bool:
        """Whether the next request carries it: announced, about to be, or without turns at all."""
        if row is not None and row["turn"] is not None:
            return True
        has_turns = self._window.turn > 0
        is_between = self._window.turn > self._window.turn_ended
        return not self._is_late(row) and (is_between or not has_turns)

    def _is_late(self, row: sqlite3.Row | None) -> bool:
        """Whether the conversation holds another answer to this very use."""
        return (row is None or row["turn"] is None) and uses.is_put_aside(
            self._connection, self._session.id, self._use.tool_use_id
        )

    def _say_where_it_is(self, entry: Entry) -> None:
        name = handle(entry.number)
        line = f"[{name}: its result came late; recall_result {name} brings it]"
        uses.say_it_came_late(self._connection, self._session.id, self._use.tool_use_id, line)

    def _entry(self) -> tuple[Entry, Body]:
        outcome = self._given.outcome
        body, start, blob = self._placed(outcome)
        number = self.number
        shows = body.content_tokens if start == 0 else 0
        terms = replace(self._terms(shows), budget_line=outcome.budget_line)
        changed = self._changed_since(outcome, body)
        said = (f"Changed since this was stored: {', '.join(changed)}.",) if changed else ()
        notes = tuple(map(sound_text, outcome.notes + said))
        delivery, same_as = deliver(body, number, start, terms, notes), None
        if changed:
            delivery = replace(delivery, page=delivery.page | {"changed_since": changed})
        if outcome.status is Status.SUCCESS:
            delivery, same_as = self._or_same(blob, delivery, notes)
        short = self._compressed(number, body, delivery, same_as)
        entry = Entry(
            status=str(outcome.status),
            message=None if outcome.message is None else sound_text(outcome.message),
            number=number,
            page_start=delivery.start,
            page_end=delivery.end,
            delivered=delivery.text,
            page=delivery.page,
            tokens=delivery.tokens,
            exact=shows if same_as is None and delivery.end > start else 0,
            raw=self._bounds.raw(delivery.text),
            compressed=short,
            compressed_raw=self._bounds.raw(short),
            same_as=same_as,
            lisp=None if self._given.lisp is None else sound_text(self._given.lisp),
            todos=self._given.todos,
        )
        return entry, body

    def _placed(self, outcome: Outcome) -> tuple[Body, int, str]:
        """Where the result stands: stored before, or stored now under the next number."""
        connection, session_id = self._connection, self._session.id
        if isinstance(self._result, Packed):
            self.number = self._window.next_number
            self._window = replace(self._window, next_number=self.number + 1)
            results.put(connection, session_id, self.number, self._use.tool, self._result)
            return self._result.body, 0, self._result.digest
        stored = outcome.stored or Stored(0)
        self.number = stored.number
        entries.touch(connection, session_id, stored.number, self._window.clock)
        blob = results.blob_of(connection, session_id, stored.number)
        return self._result, stored.offset, blob

    def _terms(self, shows: int) -> Terms:
        """Under which it is delivered; blocks shown beside the text cost as it does.

        Where `max_tokens` is asked for, it is kept however tokens are counted.
        """
        window, bounds = self._window, self._bounds
        cost = bounds.cost

        def cost_of_all(text: str) -> int:
            return cost(text) + shows

        left = bounds.prompt_limit - window.in_prompt - window.turn_tokens
        if left < self._grant.tokens:  # what is left then is what the next compaction leaves
            left = max(left, bounds.prompt_limit - window.kept - window.turn_tokens)
        counted = cost_of_all if shows else cost
        return Terms(
            self._session.id,
            self._grant.tokens,
            counted,
            left,
            self._grant.pressed,
            price=dearest(counted) if "max_tokens" in self._use.arguments else None,
        )

    def _changed_since(self, outcome: Outcome, body: Body) -> list[str]:
        """The files that a result was made from, and that are others by now."""
        if outcome.stored is None:
            return []
        root = Path(self._session.root)
        return [source.path for source in body.sources if source.changed(root)]

    def _or_same(
        self, blob: str, delivery: Delivery, notes: tuple[str, ...]
    ) -> tuple[Delivery, int | None]:
        """A text that stands in the window in full already is not sent twice."""
        shown = entries.shown_in_full(
            self._connection, self._window, blob, delivery.start, delivery.end
        )
        if shown is None or delivery.end == delivery.start:
            return delivery, None
        entries.touch(self._connection, self._session.id, shown, self._window.clock)
        line = f"Same as {handle(shown)}, which is in the window in full."
        text, tokens = with_footer("\n".join((line, *notes)), self._terms(shows=0))
        if tokens >= delivery.tokens:
            return delivery, None
        return replace(delivery, text=text, tokens=tokens), shown

    def _compressed(self, number: int, body: Body, delivery: Delivery, same_as: int | None) -> str:
        """What the window keeps of it; never more than what was delivered.

        What was only a line that said where the text stands says nothing of that any more.
        """
        if same_as is not None:
            name = handle(number)
            same = "" if same_as == number else f"same as {handle(same_as)}; "
            return f"[{name}: {same}recall_result {name} brings it back]"
        short = compressed(number, delivery.tokens, self._given.compressor, body.text)
        if self._bounds.cost(short) >= delivery.tokens:
            return delivery.text
        return short
