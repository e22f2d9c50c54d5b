"""A lane takes so much, and not more, from a client that reads no answer."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from efrit_budget.wire.call import Lane
from efrit_budget.wire.lanes import MOST_WAITING, Backlog
from tests.connection import Connection
from tests.local_sidecar import LocalSidecar
from tests.processes import until

REQUESTS = 2_000
"""More than wait in a lane, run, and have answers that fit into a pipe."""


def test_a_backlog_ends_at_its_number_and_at_its_bytes() -> None:
    few, small = Backlog(most=2), Backlog(most_bytes=100)
    assert few.enter(1, lambda: True)
    assert few.enter(1, lambda: True)
    assert not few.enter(1, lambda: True)
    few.leave(1)
    assert few.enter(1, lambda: True)
    assert small.enter(500, lambda: True), "a long one waits alone"
    assert not small.enter(1, lambda: True)
    small.leave(500)
    assert small.enter(60, lambda: True)
    assert not small.enter(60, lambda: True)


def test_a_client_that_reads_nothing_is_not_written_for_without_end(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_reading = Connection.start_reading
    monkeypatch.setattr(Connection, "start_reading", lambda _: None)
    with LocalSidecar() as sidecar:
        sent: list[int] = []

        def send() -> None:
            for number in range(REQUESTS):
                call = {"session_id": "none", "name": "file_info", "tool_use_id": f"u{number}"}
                sent.append(sidecar.begin("tools/call", **call))

        sender = threading.Thread(target=send)
        sender.start()
        backlog = sidecar._server._lanes[Lane.SLOW].backlog
        assert until(lambda: backlog._waiting == MOST_WAITING)
        start_reading(sidecar)
        sender.join()
        codes = {sidecar.reply(request_id)["error"]["code"] for request_id in sent}
    assert codes == {-32001}
    assert len(sent) == REQUESTS
