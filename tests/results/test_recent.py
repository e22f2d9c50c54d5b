"""The results held in memory, so that their next page is not read from the database."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import pytest

from efrit_budget.results.body import Body
from efrit_budget.results.store import WORTH_HOLDING, RecentBodies, packed, put
from efrit_budget.results.tokens import TokenError

SIZE = 2 * WORTH_HOLDING
TABLES = """
CREATE TABLE blobs (hash TEXT, size INTEGER, data BLOB);
CREATE TABLE results (
  session_id TEXT, number INTEGER, blob TEXT, tool TEXT, created REAL, marks BLOB
);
"""


class Stored:
    """The results of one session, and the reads of the database."""

    def __init__(self, *sizes: int) -> None:
        self.connection = sqlite3.connect(":memory:")
        self.connection.row_factory = sqlite3.Row
        self.connection.executescript(TABLES)
        self.bodies = {number: Body(f"{number}" * size) for number, size in enumerate(sizes, 1)}
        for number, body in self.bodies.items():
            put(self.connection, "s", number, "tool", packed(self.connection, body))
        self.reads: list[str] = []
        self.connection.set_trace_callback(self.reads.append)

    def is_read(self, recent: RecentBodies, number: int) -> bool:
        """Return whether getting a result reads it from the database."""
        self.reads.clear()
        assert recent.get(self.connection, "s", number) == self.bodies[number]
        return any("blobs.data" in read for read in self.reads)


@pytest.fixture
def three() -> Iterator[Stored]:
    """Three stored results of the same size."""
    stored = Stored(SIZE, SIZE, SIZE)
    yield stored
    stored.connection.close()


def test_a_result_is_read_once(three: Stored) -> None:
    recent = RecentBodies()
    assert [three.is_read(recent, number) for number in (1, 1, 2, 2, 1)] == [
        *(True, False),
        *(True, False),
        False,
    ]


def test_what_was_just_stored_is_not_read_at_all(three: Stored) -> None:
    recent = RecentBodies()
    recent.keep(three.connection, "s", 2, three.bodies[2])
    assert not three.is_read(recent, 2)


def test_what_was_not_used_for_longest_makes_room(three: Stored) -> None:
    recent = RecentBodies(most_characters=2 * SIZE)
    for number in (1, 2, 1, 3):
        three.is_read(recent, number)
    assert not three.is_read(recent, 1)
    assert not three.is_read(recent, 3)
    assert three.is_read(recent, 2)


def test_a_result_that_is_kept_twice_takes_its_room_once(three: Stored) -> None:
    recent = RecentBodies(most_characters=2 * SIZE)
    for _ in range(3):
        recent.keep(three.connection, "s", 1, three.bodies[1])
    recent.keep(three.connection, "s", 2, three.bodies[2])
    assert [three.is_read(recent, number) for number in (1, 2)] == [False, False]


def test_small_results_are_not_held() -> None:
    stored = Stored(WORTH_HOLDING - 1, WORTH_HOLDING)
    recent = RecentBodies()
    for number in (1, 2):
        stored.is_read(recent, number)
    assert [stored.is_read(recent, number) for number in (1, 2)] == [True, False]
    stored.connection.close()


def test_another_session_of_the_same_name_has_other_results(three: Stored) -> None:
    recent = RecentBodies()
    three.is_read(recent, 1)
    three.connection.execute("DELETE FROM results WHERE number = 1")
    with pytest.raises(TokenError, match="this session has no result r1"):
        recent.get(three.connection, "s", 1)
    three.bodies[1] = Body("another" * SIZE)
    put(three.connection, "s", 1, "tool", packed(three.connection, three.bodies[1]))
    assert three.is_read(recent, 1)
