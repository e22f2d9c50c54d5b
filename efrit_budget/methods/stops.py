"""`tools/stop`: a person ends one call and keeps what it gave so far."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

from pydantic import Field

from efrit_budget.errors import Json
from efrit_budget.wire.method import Call, Lane, Method, Params
from efrit_budget.worklog.use import Use


class StopParams(Params):
    """The params of `tools/stop`."""

    session_id: Annotated[str, Field(min_length=1, max_length=64)]
    tool_use_id: Annotated[str, Field(min_length=1, max_length=200)]


class Stops:
    """The calls that run, each with the request it came by."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[tuple[str, str], Call] = {}

    def methods(self) -> list[Method]:
        """The method by which a person stops a call, in force at once."""
        return [Method("tools/stop", StopParams, self._stop, Lane.ORDERED)]

    @contextmanager
    def running(self, use: Use, call: Call) -> Iterator[None]:
        """Let the use be stopped while the block runs; a second call of it only waits for it."""
        key = (use.session_id, use.tool_use_id)
        with self._lock:
            first = self._running.setdefault(key, call) is call
        try:
            yield
        finally:
            if first:
                with self._lock:
                    del self._running[key]

    def _stop(self, params: StopParams, _: Call) -> Json:
        key = (params.session_id, params.tool_use_id)
        with self._lock:
            running = self._running.get(key)
        if running is not None:
            running.cancellation.cancel(by_person=True)
        return {
            "session_id": params.session_id,
            "tool_use_id": params.tool_use_id,
            "stopped": running is not None,
        }
