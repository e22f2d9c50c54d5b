"""A turn costs the database the same late in a long session as early."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

import pytest

from efrit_budget.storage.database import Database
from tests.conversation.client import text, tool_use, words
from tests.conversation.conftest import OpenClient

EARLY, LATE = slice(40, 120), slice(240, 320)
"""Turns that are measured: the cheapest of each, behind a rewrite, are compared."""
INSTRUCTIONS = 10
MOST_FOR_A_TURN = 15
"""The most instructions by which a request may grow with each turn: those that count a row."""
LISTED = 20


@pytest.fixture
def worked(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Return how often SQLite has carried out INSTRUCTIONS since the last call."""
    counted = [0]
    set_up = Database._set_up

    def count() -> int:
        counted[0] += 1
        return 0

    def set_up_counting(self: Database, connection: sqlite3.Connection) -> None:
        set_up(self, connection)
        connection.set_progress_handler(count, INSTRUCTIONS)

    def since() -> int:
        found, counted[0] = counted[0], 0
        return found

    monkeypatch.setattr(Database, "_set_up", set_up_counting)
    return since


def test_a_turn_and_the_work_log_cost_about_the_same_late_as_early(
    open_client: OpenClient, worked: Callable[[], int]
) -> None:
    client = open_client(total=12_000, per_tool_default=1_500)
    begun: list[int] = []
    listed: list[int] = []
    for number in range(LATE.stop):
        worked()
        client.begin(None if number else "Look at all of it.")
        begun.append(worked())
        client.end(text(words(60, -number)), tool_use(f"u{number}", "eval_sexp"))
        client.record(f"u{number}", words(60, number))
        worked()
        client.call("worklog/list", limit=LISTED)
        listed.append(worked())
    assert client.epoch() > 1
    for counted in (begun, listed):
        growth = (min(counted[LATE]) - min(counted[EARLY])) * INSTRUCTIONS
        assert growth <= MOST_FOR_A_TURN * (LATE.start - EARLY.start)
