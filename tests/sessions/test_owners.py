"""Sessions belong to one sidecar at a time, and go from one to another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.connection import Connection, RpcError
from tests.local_sidecar import LocalSidecar


def _refused(sidecar: Connection, method: str, **params: Any) -> RpcError:
    with pytest.raises(RpcError) as caught:
        sidecar.request(method, **params)
    return caught.value


def test_a_session_in_use_is_resumed_elsewhere_only_when_it_is_to_be_taken_over(
    sidecar: Connection, session: str
) -> None:
    with LocalSidecar() as other:
        refused = _refused(other, "session/resume", session_id=session)
        assert refused.code == -32009
        assert refused.data == {"session_id": session}
        assert "in use by another Emacs" in refused.message
        assert sidecar.request("session/resume", session_id=session)["state"] == "open"
        taken = other.request("session/resume", session_id=session, take_over=True)
        assert taken["state"] == "open"
        assert _refused(sidecar, "session/resume", session_id=session).code == -32009
        begin = {"session_id": session, "model": "m", "system": "s", "user_message": "Go."}
        assert _refused(sidecar, "turn/begin", **begin).code == -32009
        assert other.request("turn/begin", **begin)["turn_id"]
        other.request("session/close", session_id=session)
        assert sidecar.request("session/resume", session_id=session)["state"] == "open"


def test_a_session_goes_from_a_sidecar_to_the_one_that_follows_it(
    sidecar: Connection, project: Path
) -> None:
    opened = sidecar.request("session/open", root=str(project))
    resume = {"session_id": opened["session_id"], "former_owner": opened["owner"]}
    with LocalSidecar() as following, LocalSidecar() as late:
        resumed = following.request("session/resume", **resume)
        assert resumed["owner"] != opened["owner"]
        assert _refused(sidecar, "session/resume", session_id=resume["session_id"]).code == -32009
        assert _refused(late, "session/resume", **resume).code == -32009
