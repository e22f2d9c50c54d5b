"""The stored part of a session survives a restart; the rest ends with the sidecar."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from efrit_budget.sessions.rows import LIMITS_VERSION
from tests.connection import Connection


def _open(sidecar: Connection, root: Path, **params: Any) -> dict[str, Any]:
    opened: dict[str, Any] = sidecar.request("session/open", root=str(root), **params)
    return opened


# Limits that other versions have stored


def test_limits_of_another_version_are_read(sidecar: Connection, project: Path, home: Path) -> None:
    _open(sidecar, project, session_id="kept", limits={"total": 50_000})
    file = home / "efrit" / "state" / "efrit-budget.sqlite3"
    with closing(sqlite3.connect(file)) as database, database:
        [text] = database.execute("SELECT limits FROM sessions WHERE id = 'kept'").fetchone()
        stored = json.loads(text)
        assert stored["version"] == LIMITS_VERSION
        del stored["version"], stored["history"], stored["floor"]
        stored["pictures"] = 7_000
        database.execute("UPDATE sessions SET limits = ?", (json.dumps(stored),))
    read = sidecar.request("session/status", session_id="kept")["limits"]
    assert read["total"] == 50_000
    assert read["history"] == 6_000, "its share of the total"
    assert read["floor"] == 500
    assert "pictures" not in read
    assert sidecar.request("session/list")["sessions"]


# Buffers that were not saved


@pytest.mark.parametrize("end", ["session/close", "session/purge"])
def test_what_emacs_had_not_saved_ends_with_its_session(
    sidecar: Connection, project: Path, end: str
) -> None:
    (project / "a.txt").write_text("on the disk\n", encoding="utf-8")
    _open(sidecar, project, session_id="mine")
    sidecar.request("buffers/sync", session_id="mine", path="a.txt", text="not saved\n")
    sidecar.request(end, session_id="mine")
    sidecar.request("session/resume", session_id="mine")
    call = {"session_id": "mine", "name": "read_file", "arguments": {"path": "a.txt"}}
    shown = sidecar.request("tools/call", tool_use_id="one", **call)["text"]
    assert "on the disk" in shown
    assert "not saved" not in shown


def test_a_deleted_session_leaves_no_text_in_memory(sidecar: Connection, project: Path) -> None:
    _open(sidecar, project, session_id="mine")
    sidecar.request("buffers/sync", session_id="mine", path="a.txt", text="not saved\n")
    sidecar.request("session/delete", session_id="mine")
    _open(sidecar, project, session_id="mine")
    call = {"session_id": "mine", "name": "read_file", "arguments": {"path": "a.txt"}}
    assert "not saved" not in sidecar.request("tools/call", tool_use_id="one", **call)["text"]
