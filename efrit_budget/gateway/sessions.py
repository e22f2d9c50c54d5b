"""The other MCP servers of sessions; the SDK is loaded when the first of them is started."""

import importlib.util
import threading
from typing import TYPE_CHECKING

from efrit_budget.cancellation import Cancellation
from efrit_budget.errors import EfritError, JsonObject
from efrit_budget.gateway.wanted import Report, ServedTool, Wanted

if TYPE_CHECKING:
    from efrit_budget.gateway.bodies import Recorded
    from efrit_budget.gateway.running import RunningServers

NO_SDK = "MCP servers need one more package beside the sidecar: pip install 'efrit-budget[mcp]'"


class NoSdkError(EfritError):
    """The MCP SDK is not installed."""


def has_sdk() -> bool:
    """Return whether the MCP SDK is installed."""
    return importlib.util.find_spec("mcp") is not None


class SessionServers:
    """Starts the servers of sessions, calls their tools, and stops them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runner: RunningServers | None = None

    def start(
        self, session_id: str, wanted: Wanted, cancellation: Cancellation
    ) -> dict[str, list[ServedTool]]:
        """Start the servers of a session, and return their tools by server.

        Servers that run already as wanted are left alone. Raise without the SDK.
        """
        with self._lock:
            if self._runner is None:
                if not has_sdk():
                    raise NoSdkError(NO_SDK)
                from efrit_budget.gateway.running import RunningServers  # noqa: PLC0415  the SDK

                self._runner = RunningServers()
        return self._runner.start(session_id, wanted, cancellation)

    def states(self, session_id: str) -> dict[str, str]:
        """Return the state of each server of a session in words, by its name."""
        return {} if self._runner is None else self._runner.states(session_id)

    def call(
        self,
        session_id: str,
        name: str,
        arguments: JsonObject,
        cancellation: Cancellation,
        report: Report,
    ) -> "Recorded | None":
        """Return the reply of a tool as it is recorded, or None if the session has no servers."""
        if self._runner is None:
            return None
        return self._runner.call(session_id, name, arguments, cancellation, report)

    def stop(self, session_id: str) -> None:
        """Have the servers of a session stop, if it has any."""
        if self._runner is not None:
            self._runner.stop(session_id)

    def close(self) -> None:
        """Stop all servers."""
        if self._runner is not None:
            self._runner.close()
