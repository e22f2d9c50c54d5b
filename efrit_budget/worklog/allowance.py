"""What a tool call may use: its own limit, or its fair share of what the window still has."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from efrit_budget.window.frame import Bounds
from efrit_budget.window.record import Window
from efrit_budget.worklog.use import Use

ONE_LINE = 60
"""What a result costs of which only the handle is shown; kept back for every call of a turn."""


@dataclass(frozen=True)
class Grant:
    """What a call may use, and whether that is only the floor."""

    tokens: int
    pressed: bool = False


def granted(window: Window, bounds: Bounds, wanted: int, calls: int, reserved: int) -> Grant:
    """The grant for one of `calls` calls that have not ended, beside `reserved` for running ones.

    The share counts on the compaction that comes before the next prompt: results of earlier
    turns give way to those of the turn in hand. The floor counts on all that can give way.
    """
    spent = window.turn_tokens + reserved
    share = (bounds.plan_limit - window.kept - spent) // calls
    floor = min(wanted, bounds.limits.floor)
    if share >= floor:
        return Grant(max(min(wanted, ONE_LINE), min(wanted, share)))
    at_most = (bounds.plan_limit - window.least - spent) // calls
    return Grant(max(min(wanted, ONE_LINE), min(floor, at_most)), pressed=True)


@dataclass(frozen=True)
class Standing:
    """How a session stands when a grant is asked for."""

    window: Window
    bounds: Bounds
    announced: int
    """Calls of the turn in hand that have no result yet."""
    ended: frozenset[str] = frozenset()
    """Of the calls that hold a grant, those whose result the window has already."""


class Reservations:
    """What the calls now running may use, so that those beside them do not count on it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[tuple[str, str], int] = {}

    @contextmanager
    def taking(
        self, use: Use, wanted: int, standing_of: Callable[[Collection[str]], Standing]
    ) -> Iterator[tuple[Grant, Standing]]:
        """Hold a grant while the block runs.

        A call whose result is written counts by that result alone, though it holds its grant a
        moment longer: so no lock has to be held while it is written.
        """
        key = (use.session_id, use.tool_use_id)
        with self._lock:
            beside = {
                tool_use_id: tokens
                for (session_id, tool_use_id), tokens in self._running.items()
                if session_id == use.session_id
            }
            standing = standing_of(beside)
            running = [tokens for name, tokens in beside.items() if name not in standing.ended]
            calls = max(1, standing.announced - len(running))
            grant = granted(standing.window, standing.bounds, wanted, calls, sum(running))
            self._running[key] = grant.tokens
        try:
            yield grant, standing
        finally:
            with self._lock:
                self._running.pop(key, None)


def announced(connection: sqlite3.Connection, session_id: str) -> int:
    """How many calls that a reply announced have no result yet."""
    row = connection.execute(
        "SELECT count(*) FROM calls INDEXED BY calls_announced"
        " WHERE session_id = ? AND state = 'announced'"
        " AND turn IS NOT NULL",
        (session_id,),
    ).fetchone()
    return int(row[0])


def ended(
    connection: sqlite3.Connection, session_id: str, tool_use_ids: Collection[str]
) -> frozenset[str]:
    """Return those of the calls that have a result."""
    rows = connection.execute(
        "SELECT tool_use_id FROM calls WHERE session_id = ? AND number IS NOT NULL"
        " AND tool_use_id IN (SELECT value FROM json_each(?))",
        (session_id, json.dumps(list(tool_use_ids))),
    ).fetchall()
    return frozenset(row["tool_use_id"] for row in rows)
