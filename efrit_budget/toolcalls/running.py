"""Track the tool calls of this process: stop one for the person, start one with effects once."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakValueDictionary

from efrit_budget.cancellation import Cancellation
from efrit_budget.conversation import calls, tool_uses
from efrit_budget.conversation.tool_call import ToolCall
from efrit_budget.storage.database import Database
from efrit_budget.storage.owner import Owner


class RunningCalls:
    """The calls that have arrived and not ended, and those with effects that have started."""

    def __init__(self, database: Database, owner: Owner) -> None:
        self._database = database
        self._owner = owner
        self._lock = threading.Lock()
        self._arrived: WeakValueDictionary[tuple[str, str], Cancellation] = WeakValueDictionary()
        self._started: Counter[tuple[str, str]] = Counter()

    # Stopping

    def arrive(self, session_id: str, tool_use_id: str, cancellation: Cancellation) -> None:
        """Register a call, so that it can be stopped even before a thread runs it."""
        with self._lock:
            self._arrived.setdefault((session_id, tool_use_id), cancellation)

    def depart(self, call: ToolCall, cancellation: Cancellation) -> None:
        """Remove a call that has ended; `stop` no longer finds it."""
        with self._lock:
            if self._arrived.get((call.session_id, call.tool_use_id)) is cancellation:
                del self._arrived[call.session_id, call.tool_use_id]

    def stop(self, session_id: str, tool_use_id: str) -> bool:
        """Stop a call for the person; return false if no such call is registered."""
        with self._lock:
            cancellation = self._arrived.get((session_id, tool_use_id))
        if cancellation is not None:
            cancellation.cancel(by_person=True)
        return cancellation is not None

    # Starting once

    @contextmanager
    def start(self, call: ToolCall) -> Iterator[bool]:
        """Record that a call with effects runs in this block; yield false if it was started before.

        The call counts as running before its row is written, so that `is_running` never misses it.
        """
        key = (call.session_id, call.tool_use_id)
        self._count(key, 1)
        try:
            with self._database.writing() as connection:
                starts = tool_uses.start(connection, call, self._owner.name)
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
            self._started[key] += change
            if not self._started[key]:
                del self._started[key]

    def undo_start(self, call: ToolCall) -> None:
        """Undo `start`: the call only asked a question."""
        with self._database.writing() as connection:
            calls.undo_start(connection, call)

    def is_running(self, call: ToolCall) -> bool:
        """Return whether an unfinished call runs here or in another sidecar."""
        with self._database.reading() as connection:
            row = tool_uses.get_row(connection, call)
        if row is None or row["number"] is not None:
            return False
        if row["owner"] != self._owner.name:
            return self._owner.alive(row["owner"])
        with self._lock:
            return (call.session_id, call.tool_use_id) in self._started
