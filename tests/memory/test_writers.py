"""Many writers at once, and a writer that is killed: nothing acknowledged is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.connection import Connection
from tests.sidecar import Sidecar
from tests.soak import amount
from tests.tools.remembering import memory_of

pytestmark = pytest.mark.soak
EACH = amount(300, 10_000)
AT_ONCE = 50
LIVES = amount(3, 12)


def saving(sidecar: Connection, session: str, name: str) -> int:
    """Begin to save an observation; gives the id of the request."""
    arguments = {"title": name, "content": f"What {name} says."}
    return sidecar.begin(
        "tools/call",
        session_id=session,
        name="mem_save",
        arguments=arguments,
        tool_use_id=name,
        include_data=True,
    )


def opened(sidecar: Connection, project: Path) -> str:
    """Open a session; its tool results stay small, and no turn comes."""
    limits = {"total": 9_000_000, "response": 1_000}
    return str(sidecar.request("session/open", root=str(project), limits=limits)["session_id"])


def saved(sidecar: Connection, request: int) -> dict[str, Any]:
    """Wait for a save that was begun and return its envelope."""
    envelope: dict[str, Any] = sidecar.result(request, timeout=300)
    assert envelope["status"] == "success", envelope["text"]
    return envelope


def test_two_sidecars_that_write_at_once_lose_nothing(project: Path, home: Path) -> None:
    with Sidecar() as one, Sidecar() as other:
        writers = [(one, opened(one, project), "one"), (other, opened(other, project), "other")]
        numbers: list[int] = []
        for start in range(0, EACH, AT_ONCE):
            begun = [
                (sidecar, saving(sidecar, session, f"{name} {start + index}"))
                for index in range(AT_ONCE)
                for sidecar, session, name in writers
            ]
            numbers += [saved(sidecar, request)["data"]["id"] for sidecar, request in begun]
    assert len(set(numbers)) == 2 * EACH
    with memory_of(home) as store:
        assert store.count() == 2 * EACH
        assert store.search(f"other {EACH - 1}").total >= 1


def test_a_sidecar_killed_between_any_two_writes_loses_nothing_it_answered(
    project: Path, home: Path
) -> None:
    answered: dict[str, int] = {}
    for life in range(LIVES):
        with Sidecar() as sidecar:
            session = opened(sidecar, project)
            names = [f"life{life} number{index}" for index in range(40)]
            requests = {name: saving(sidecar, session, name) for name in names}
            for name in list(requests)[: life * 3]:
                answered[name] = saved(sidecar, requests[name])["data"]["id"]
            sidecar.kill()
    with memory_of(home) as store:
        titles = {one.title: one.id for one in store.every()}
        assert len(titles) == store.count(), "none is there twice"
        assert answered.items() <= titles.items()
        for title, number in titles.items():
            [found] = [
                one.observation.id
                for one in store.search(title, limit=200).candidates
                if one.observation.title == title
            ]
            assert found == number, "the words of what is there are found, and no others"
