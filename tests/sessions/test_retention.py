"""What is kept, and for how long."""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from efrit_budget.errors import SessionClosedError
from tests.window.client import Client, words
from tests.window.recalled import read

DAY = 86_400
MIB = 2**20


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    """Results are kept for 30 days, and a mebibyte of them."""
    made = Client(tmp_path, configured={"retention.max_bytes": MIB})
    yield made
    made.close()


def session(client: Client, closed_days_ago: float | None, given: str = "done\n") -> str:
    """A session with a result, closed so long ago."""
    client.anew().record("use", given)
    if closed_days_ago is not None:
        client.call("session/close")
        then = time.time() - closed_days_ago * DAY
        with sqlite3.connect(client.folder / "db.sqlite") as database:
            database.execute(
                "UPDATE sessions SET closed = ?, touched = ? WHERE id = ?",
                (then, then, client.session),
            )
        database.close()
    return client.session


def noise(seed: int) -> str:
    """Half a mebibyte that no compression makes smaller."""
    return random.Random(seed).randbytes(MIB // 4).hex()


def listed(client: Client) -> dict[str, dict[str, Any]]:
    """Every session by its id, after another was opened."""
    client.anew()
    client.app.finish_removing()
    sessions = client.app.call("session/list", {"include_closed": True})["sessions"]
    return {found["session_id"]: found for found in sessions}


def test_a_session_closed_for_longer_than_the_setting_goes_and_leaves_a_line(
    client: Client,
) -> None:
    old, young = session(client, 31), session(client, 29)
    found = listed(client)
    assert found[old]["purged"]
    assert found[old]["note"] == "its contents expired: closed for 30 days"
    assert found[old]["calls"] == 0
    assert not found[young]["purged"]
    assert found[young]["calls"] == 1


def test_a_session_that_is_worked_in_is_never_touched(client: Client) -> None:
    kept = session(client, None)
    with sqlite3.connect(client.folder / "db.sqlite") as database:
        database.execute("UPDATE sessions SET touched = 0, created = 0, told = 1")
    database.close()
    assert listed(client)[kept]["calls"] == 1


def test_when_the_store_is_full_the_least_recently_used_closed_sessions_go(
    client: Client,
) -> None:
    whole = {session(client, days, noise(days)): days for days in (4, 3, 2, 1)}
    kept = session(client, None, noise(9))
    found = listed(client)
    gone = [days for session_id, days in whole.items() if found[session_id]["purged"]]
    assert gone
    assert gone == [4, 3, 2, 1][: len(gone)], "the oldest first"
    notes = {found[one]["note"] for one, days in whole.items() if days in gone}
    assert notes == {"its contents expired: the store was full"}
    assert not found[kept]["purged"]


def test_what_an_open_session_holds_too_is_not_lost_with_a_closed_one(client: Client) -> None:
    shared = words(2_000)
    session(client, 40, shared)
    session(client, None, shared)
    kept = client.session
    listed(client)
    client.session = kept
    read(client, "r1", shared)


def test_a_session_taken_up_again_after_it_expired_expires_again(client: Client) -> None:
    old = session(client, 31)
    listed(client)
    client.session = old
    client.call("session/resume")
    assert client.record("next", "new\n")["handle"] == "r2", "no handle comes again"
    client.call("session/close")
    then = time.time() - 31 * DAY
    with sqlite3.connect(client.folder / "db.sqlite") as database:
        database.execute("UPDATE sessions SET closed = ?, purged = ? - 1", (then, then))
        database.execute("UPDATE sessions SET touched = ?", (then,))
    database.close()
    assert listed(client)[old]["calls"] == 0


def test_an_expired_session_is_closed_until_it_is_taken_up_again(client: Client) -> None:
    old = session(client, 31)
    listed(client)
    client.session = old
    with pytest.raises(SessionClosedError, match="session/resume opens it again"):
        client.use("recall_result", handle="r1")
    client.call("session/resume")
    envelope = client.use("recall_result", handle="r1")
    assert envelope["status"] == "error"
    assert "this session has no result r1" in envelope["message"]
