"""Reads during others' writes see one state, and work that waits for a lock delays no read."""

from __future__ import annotations

import fcntl
import itertools
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from efrit_budget.storage.owner import Owner
from tests.conversation.api_rules import violations
from tests.conversation.client import Client, words
from tests.databases import locked
from tests.local_sidecar import LocalSidecar
from tests.soak import amount


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    """A client with a small window, which is rewritten often."""
    made = Client(tmp_path, total=12_000, per_tool_default=1_500)
    yield made
    made.close()


def test_messages_that_are_read_beside_turns_and_rewrites_are_always_valid(client: Client) -> None:
    client.turn(words(300), message="Begin.")
    wanted, wrong, seen = amount(60, 20_000), list[str](), list[int]()
    ended = threading.Event()

    def read() -> None:
        while len(seen) < wanted or len(set(seen)) < 2:
            found = client.app.call("session/messages", {"session_id": client.session})
            wrong.extend(_wrong(found["messages"]))
            seen.append(found["epoch"])

    readers = [threading.Thread(target=read) for _ in range(4)]

    def work() -> None:
        for number in itertools.count():
            if ended.is_set():
                return
            client.turn(words(400, number), words(500, -number))

    worker = threading.Thread(target=work)
    for thread in (worker, *readers):
        thread.start()
    for thread in readers:
        thread.join()
    ended.set()
    worker.join()
    assert len(seen) >= wanted, "a reader failed"
    assert not wrong


def _wrong(messages: list[dict[str, Any]]) -> list[str]:
    """Return what the API would refuse, leaving out a last reply that awaits results."""
    whole = messages[:-1] if messages[-1]["role"] == "assistant" else messages
    return violations(whole, system_messages=True)


def test_reading_goes_on_while_many_writers_wait_for_another_process(
    home: Path, project: Path
) -> None:
    database = home / "efrit" / "state" / "efrit-budget.sqlite3"
    with LocalSidecar() as sidecar:
        sidecar.request("session/open", root=str(project), session_id="one")
        with locked(database):
            waiting = [
                sidecar.begin("session/rename", session_id="one", title=f"name {number}")
                for number in range(50)
            ]
            read = [
                sidecar.begin(method, **params)
                for _ in range(20)
                for method, params in (("ping", {}), ("session/status", {"session_id": "one"}))
            ]
            for request_id in read:
                sidecar.result(request_id)
            answered = {message.value.get("id") for message in sidecar.received}
            assert answered.isdisjoint(waiting), "a writer did not wait"
        for request_id in waiting:
            assert sidecar.result(request_id)["session_id"] == "one"


def test_who_asks_whether_an_owner_lives_is_not_taken_for_it(tmp_path: Path) -> None:
    owner = Owner(tmp_path / "db.sqlite3")
    dead = tmp_path / "db.sqlite3.owners" / "dead"
    dead.touch()
    with dead.open("rb") as asking:
        fcntl.flock(asking, fcntl.LOCK_SH)
        assert not owner.alive("dead"), "another one that asks is no owner"
    other = Owner(tmp_path / "db.sqlite3")
    assert owner.alive(other.name)
    other.close()
    assert not owner.alive(other.name)
    owner.close()
