"""The retention of sessions and results."""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from efrit_budget.errors import SessionClosedError
from tests.conversation.client import Client, text, words
from tests.conversation.recalled import read

DAY = 86_400
MIB = 2**20


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    """A client that keeps results for 30 days, and at most a mebibyte of them."""
    made = Client(tmp_path, configured={"retention.max_bytes": MIB})
    yield made
    made.close()


def session(client: Client, closed_days_ago: float | None, given: str = "done\n") -> str:
    """Record a result in a new session, close it so many days ago and return its id."""
    client.open_session().record("use", given)
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
    """Return half a mebibyte that does not compress."""
    return random.Random(seed).randbytes(MIB // 4).hex()


def listed(client: Client) -> dict[str, dict[str, Any]]:
    """Open another session and return all sessions by id."""
    client.open_session()
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


# Sessions that nobody closed


def at_rest(client: Client, days: float, given: str = "done\n") -> str:
    """Record a result in a new session, leave it unused for days and return its id."""
    client.open_session().record("use", given)
    change(client, "UPDATE sessions SET touched = ?, owner = NULL WHERE id = ?", days)
    return client.session


def change(client: Client, statement: str, days: float) -> None:
    """Change the client's session in the database."""
    with closing(sqlite3.connect(client.folder / "db.sqlite")) as database, database:
        database.execute(statement, (time.time() - days * DAY, client.session))


def start_again(client: Client) -> list[str]:
    """End the process and open a session in the next one; gives what its person is told."""
    client.app.close()
    client.app = client.opened()
    warnings = client.app.call("session/open", {"root": str(client.root)})["warnings"]
    client.app.finish_removing()
    return [*map(str, warnings)]


def calls(client: Client, session_id: str) -> int:
    """Return the number of a session's calls."""
    sessions = client.app.call("session/list", {"include_closed": True})["sessions"]
    return next(int(found["calls"]) for found in sessions if found["session_id"] == session_id)


def test_a_session_long_at_rest_goes_at_the_start_after_its_person_was_told(
    client: Client,
) -> None:
    young, old = at_rest(client, 20), at_rest(client, 90)
    [told] = start_again(client)
    assert old in told
    assert young not in told
    assert "when efrit-budget next starts" in told
    assert "rename it" in told
    assert "retention.days = 0" in told
    assert calls(client, old) == 1, "nothing goes without a word"
    assert start_again(client) == [], "it is told once"
    assert calls(client, old) == 0
    assert calls(client, young) == 1
    client.session = old
    status = client.call("session/status")
    assert status["note"] == "its contents expired: not used for 30 days"
    assert status["state"] == "closed"


def test_a_session_is_told_of_a_week_before_its_time(client: Client) -> None:
    soon = at_rest(client, 25)
    [told] = start_again(client)
    assert soon in told
    assert time.strftime("%Y-%m-%d", time.localtime(time.time() + 5 * DAY)) in told
    assert start_again(client) == []
    assert calls(client, soon) == 1


def test_what_was_told_of_and_then_used_is_told_of_again_before_it_goes(client: Client) -> None:
    used = at_rest(client, 90)
    start_again(client)
    client.session = used
    client.call("session/resume")
    change(client, "UPDATE sessions SET told = ?, owner = NULL WHERE id = ?", 100)
    change(client, "UPDATE sessions SET touched = ? WHERE id = ?", 40)
    [told] = start_again(client)
    assert used in told
    assert calls(client, used) == 1


def test_sessions_that_were_renamed_or_hold_a_pin_stay(client: Client) -> None:
    renamed = at_rest(client, 90)
    client.call("session/rename", title="The parser")
    pinned = at_rest(client, 90, "pinned\n")
    client.call("worklog/pin", handle="r1")
    change(client, "UPDATE sessions SET touched = ? WHERE id = ?", 90)
    named_by_emacs = at_rest(client, 90)
    client.call("session/rename", title="Fix the parser", automatic=True)
    for _ in range(3):
        start_again(client)
    assert calls(client, renamed) == calls(client, pinned) == 1
    assert calls(client, named_by_emacs) == 0


def test_with_a_retention_of_0_days_all_stay(tmp_path: Path) -> None:
    client = Client(tmp_path, configured={"retention.days": 0})
    old = at_rest(client, 5_000)
    for _ in range(3):
        assert start_again(client) == []
    assert calls(client, old) == 1
    client.close()


def test_a_conversation_without_tools_counts_as_use(client: Client) -> None:
    talked = at_rest(client, 90)
    client.begin("Hello.")
    client.end(text("Hello."))
    assert start_again(client) == []
    assert calls(client, talked) == 1


# The size of the file


def test_the_file_shrinks_with_what_it_holds(client: Client) -> None:
    for seed in range(2, 14):
        session(client, None, noise(seed))
    kept = session(client, None, noise(1))
    file = client.folder / "db.sqlite"
    with closing(sqlite3.connect(file)) as database, database:
        long_ago = time.time() - 90 * DAY
        database.execute("UPDATE sessions SET closed = ? WHERE id <> ?", (long_ago, kept))
        [before] = database.execute("PRAGMA page_count").fetchone()
    listed(client)
    assert file.stat().st_size < before * 4096 / 4
    assert file.stat().st_size <= 1.5 * held_bytes(file)
    client.session = kept
    assert client.call("worklog/show", handle="r1")["text"] == noise(1)


def test_a_file_of_an_older_version_is_rewritten_once_after_a_word(client: Client) -> None:
    for seed in range(8):
        session(client, 60, noise(seed))
    client.app.close()
    file = client.folder / "db.sqlite"
    with closing(sqlite3.connect(file, isolation_level=None)) as database:
        database.execute("PRAGMA auto_vacuum = NONE")
        database.execute("VACUUM")
    client.app = client.opened()
    [told] = start_again(client)
    assert "rewritten once" in told
    assert start_again(client) == []
    assert file.stat().st_size <= 1.5 * held_bytes(file)


def test_what_a_killed_process_began_to_remove_is_removed_before_it_is_used(
    client: Client,
) -> None:
    half = session(client, None)
    client.record("other", "more\n")
    with closing(sqlite3.connect(client.folder / "db.sqlite")) as database, database:
        database.execute("UPDATE sessions SET expiring = 1, closed = 1, purged = 1")
    client.session = half
    client.call("session/resume")
    assert client.entries() == []
    assert client.record("next", "new\n")["handle"] == "r3"


def held_bytes(file: Path) -> int:
    """Return the size of the database without its free pages."""
    with closing(sqlite3.connect(file)) as database:
        pages, free, size = (
            int(database.execute(f"PRAGMA {name}").fetchone()[0])
            for name in ("page_count", "freelist_count", "page_size")
        )
    return (pages - free) * size


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
