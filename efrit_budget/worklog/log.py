"""The work log of a session: what each call gave, stored whole and delivered in part."""

from __future__ import annotations

import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property

from efrit_budget.budget.models import Model
from efrit_budget.errors import Json
from efrit_budget.results import store as results
from efrit_budget.results.body import Body
from efrit_budget.results.sound import sound_text
from efrit_budget.results.store import Packed, RecentBodies
from efrit_budget.results.tokens import Place
from efrit_budget.sessions.store import Session, touch
from efrit_budget.storage.database import Database
from efrit_budget.storage.owner import Owner
from efrit_budget.tools.base import Outcome
from efrit_budget.window import record
from efrit_budget.window.frame import bounds_of
from efrit_budget.worklog import entries
from efrit_budget.worklog.allowance import Grant, Standing, announced, ended
from efrit_budget.worklog.compress import summary
from efrit_budget.worklog.draft import Draft, Ending, Given
from efrit_budget.worklog.use import Use


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
        self._running: Counter[tuple[str, str]] = Counter()

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

        It counts as running before it is noted: who sees it noted can ask whether it runs.
        """
        key = (use.session_id, use.tool_use_id)
        self._count(key, 1)
        try:
            with self._database.writing() as connection:
                starts = entries.begin(connection, use, self._owner.name)
        except BaseException:
            self._count(key, -1)
            raise
        if not starts:
            self._count(key, -1)
        try:
            yield starts
        finally:
            if starts:
                self._count(key, -1)

    def _count(self, key: tuple[str, str], change: int) -> None:
        with self._lock:
            self._running[key] += change
            if not self._running[key]:
                del self._running[key]

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

    def standing(self, session: Session, beside: Collection[str] = ()) -> Standing:
        """How the session's budget stands for a call, beside others that hold a grant."""
        with self._database.reading() as connection:
            window = record.load(connection, session.id)
            bounds = bounds_of(connection, session.limits, window.model, self._model_named)
            return Standing(
                window,
                bounds,
                announced(connection, session.id),
                ended(connection, session.id, beside) if beside else frozenset(),
            )

    def finish(
        self, session: Session, use: Use, given: Given, grant: Grant, standing: Standing
    ) -> dict[str, Json]:
        """Store what a use gave, and deliver what of it the grant allows.

        Where the use gave something before, that stands. What takes long, and what is a tool's,
        is done before the transaction: should the window have changed meanwhile, it is done anew.
        """
        result = self._result(session, given.outcome)
        body = result.body if isinstance(result, Packed) else result
        kept = summary(given.compressor, body.text, use.tool)
        ending = Ending(session, use, given, result, body, kept, grant, standing.bounds)
        while True:
            with self._database.reading() as connection:
                draft = Draft(connection, ending)
            with self._database.writing() as connection:
                row = entries.row_of(connection, use)
                if row is not None and entries.has_result(row):
                    return entries.envelope_of(connection, row)
                if draft.holds(connection):
                    self._keep(connection, ending, draft, row)
                    return entries.envelope(draft.entry, ending.body)

    def _keep(
        self, connection: sqlite3.Connection, ending: Ending, draft: Draft, row: sqlite3.Row | None
    ) -> None:
        """Write a draft, and hold a new body for its next pages."""
        touch(connection, ending.session.id)
        draft.keep(connection, row)
        if isinstance(ending.result, Packed):
            self._recent.keep(connection, ending.session.id, draft.number, ending.body)

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
