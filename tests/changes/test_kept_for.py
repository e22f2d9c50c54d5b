"""The contents of files are stored for as long as a session has a change of them."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.changes.hands import Hands
from tests.processes import until
from tests.sidecar import Sidecar

DAY = 86_400
MEBIBYTE = 2**20


@pytest.fixture
def database(hands: Hands, home: Path) -> Path:
    """Return the sidecar's database file."""
    return next(home.rglob("*.sqlite3"))


def kept(database: Path) -> int:
    """Count the stored contents."""
    with closing(sqlite3.connect(database)) as connection:
        return int(connection.execute("SELECT count(*) FROM images").fetchone()[0])


def another(hands: Hands) -> Hands:
    """Open another session on the same project."""
    opened = hands.sidecar.request("session/open", root=str(hands.project))
    return Hands(hands.sidecar, hands.project, opened["session_id"])


def end(hands: Hands, how: str) -> None:
    """Delete or purge a session."""
    hands.sidecar.request(f"session/{how}", session_id=hands.session)


@pytest.mark.process
def test_a_content_is_stored_once_and_compressed(
    hands: Hands, sidecar: Sidecar, database: Path
) -> None:
    content = b"the same again and again\n" * 100_000
    before = database.stat().st_size
    for name in "abc":
        hands.create(name, content)
        hands.rename(name, f"{name}2")
        hands.delete(f"{name}2")
    assert kept(database) == 1
    sidecar.finish()
    assert database.stat().st_size - before < len(content) // 4


@pytest.mark.parametrize("how", ["delete", "purge"])
def test_what_no_session_holds_any_more_is_freed(hands: Hands, database: Path, how: str) -> None:
    other = another(hands)
    hands.create("a", "shared")
    hands.create("b", "alone")
    other.create("c", "shared")
    edited = {"path": "c", "kind": "edit", "buffer_text": "unsaved"}
    other.changed(lambda: (hands.project / "c").write_text("d"), edited)
    assert kept(database) == 4
    end(hands, how)
    assert kept(database) == 3
    other("undo", number=2)
    end(other, how)
    assert kept(database) == 0


def test_after_a_purge_numbers_go_on_so_that_none_names_another_change(hands: Hands) -> None:
    hands.create("a", "a")
    hands("checkpoint")
    end(hands, "purge")
    hands.sidecar.request("session/resume", session_id=hands.session)
    assert hands("list") == {"changes": [], "checkpoints": []}
    assert hands.create("b", "b") == 2
    assert hands("checkpoint")["checkpoint"] == "k2"
    assert "no change c1" in hands.error("undo", number=1).told


def test_contents_expire_with_their_closed_session(hands: Hands, database: Path) -> None:
    kept_open = another(hands)
    hands.create("a", "old")
    kept_open.create("b", "young")
    hands.sidecar.request("session/close", session_id=hands.session)
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        long_ago = time.time() - 31 * DAY
        connection.execute("UPDATE sessions SET closed = ? WHERE closed IS NOT NULL", (long_ago,))
    another(hands)
    assert until(lambda: kept(database) == 1)
    kept_open("undo", number=1)


def test_contents_count_towards_the_most_that_is_kept(
    tools_for_tests: Path, project: Path, home: Path
) -> None:
    with Sidecar(env={"EFRIT_BUDGET_RETENTION__MAX_BYTES": str(MEBIBYTE)}) as sidecar:
        opened = sidecar.request("session/open", root=str(project))
        hands = Hands(sidecar, project, opened["session_id"])
        hands.create("a", os.urandom(2 * MEBIBYTE))
        another(hands)
        assert hands.now(1) == "as_left"
        sidecar.request("session/close", session_id=hands.session)
        another(hands)
        assert until(lambda: hands("list")["changes"] == [])
        note = sidecar.request("session/status", session_id=hands.session)["note"]
        assert note == "its contents expired: the store was full"
        assert until(lambda: kept(next(home.rglob("*.sqlite3"))) == 0)
