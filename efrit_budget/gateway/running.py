"""The gateways of sessions, run in a thread; importing this loads the SDK."""

import logging
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import anyio
from anyio.abc import TaskStatus
from anyio.from_thread import start_blocking_portal
from mcp.shared.dispatcher import ProgressFnT
from mcp_types import CallToolResult, Tool

from efrit_budget.cancellation import Cancellation
from efrit_budget.errors import JsonObject
from efrit_budget.gateway.bodies import Recorded, recorded
from efrit_budget.gateway.gateway import Gateway, help_tool
from efrit_budget.gateway.offers import Choice
from efrit_budget.gateway.wanted import OWN, Report, ServedTool, Wanted

Value = TypeVar("Value")

LOOK_SECONDS = 0.1
"""The seconds between two looks at whether the work was cancelled."""
STOP_SECONDS = 10.0
"""How long servers may take to end before they are left to themselves."""


@dataclass(frozen=True)
class _Running:
    """The gateway of a session."""

    wanted: Wanted
    gateway: Gateway
    stop: anyio.Event
    ended: "Future[None]"


class RunningServers:
    """Runs the servers of sessions in the event loop of one thread."""

    def __init__(self) -> None:
        logging.getLogger("mcp").setLevel(logging.CRITICAL)  # it would log texts of messages
        self._portals = start_blocking_portal(name="MCP servers")
        self._portal = self._portals.__enter__()
        self._running: dict[str, _Running] = {}
        self._starting = threading.Lock()
        self._stopped: list[Future[None]] = []

    def start(
        self, session_id: str, wanted: Wanted, cancellation: Cancellation
    ) -> dict[str, list[ServedTool]]:
        """Start the servers of a session unless these run; return their tools by server.

        Those of the gateway itself stand under `OWN`.
        """
        with self._starting:
            running = self._running.get(session_id)
            if running is None or running.wanted != wanted:
                self.stop(session_id)
                running = self._started(wanted)
                self._running[session_id] = running
        listed = self._wait(cancellation, running.gateway.tools_by_server)
        listed[OWN] = [help_tool({})]
        return {name: [_served(tool) for tool in tools] for name, tools in listed.items()}

    def _started(self, wanted: Wanted) -> _Running:
        ended, (gateway, stop) = self._portal.start_task(partial(_keep_running, wanted))
        return _Running(wanted, gateway, stop, ended)

    def states(self, session_id: str) -> dict[str, str]:
        """Return the state of each server of a session in words."""
        running = self._running.get(session_id)
        return {} if running is None else self._portal.call(running.gateway.states)

    def call(
        self,
        session_id: str,
        name: str,
        arguments: JsonObject,
        cancellation: Cancellation,
        report: Report,
    ) -> Recorded | None:
        """Return the reply of a tool as it is recorded, or None if the session has no servers.

        Raise if the call is cancelled.
        """
        running = self._running.get(session_id)
        if running is None:
            return None
        result = self._wait(
            cancellation, partial(running.gateway.call, name, arguments, _reporting(report))
        )
        return recorded(result) if isinstance(result, CallToolResult) else result

    def stop(self, session_id: str) -> None:
        """Have the servers of a session stop, if it has any; do not wait until they have."""
        running = self._running.pop(session_id, None)
        if running is not None:
            self._portal.call(running.stop.set)
            self._stopped.append(running.ended)

    def close(self) -> None:
        """Stop all servers, and the thread if they end in time."""
        for session_id in list(self._running):
            self.stop(session_id)
        if not wait(self._stopped, STOP_SECONDS).not_done:
            self._portals.__exit__(None, None, None)

    def _wait(self, cancellation: Cancellation, work: Callable[[], Awaitable[Value]]) -> Value:
        """Return what `work` returns in the event loop; cancel it if the call is cancelled."""
        future = self._portal.start_task_soon(work)
        while not wait([future], LOOK_SECONDS).done:
            if cancellation.cancelled:
                future.cancel()
                cancellation.check()
        return future.result()


async def _keep_running(
    wanted: Wanted, *, task_status: TaskStatus[tuple[Gateway, anyio.Event]]
) -> None:
    """Run the servers until the event is set, which is returned with the gateway."""
    choice = Choice(wanted.allow, wanted.deny, wanted.short, {})
    gateway, stop = Gateway(wanted.entries, choice, wanted.call_seconds), anyio.Event()
    async with gateway.running():
        task_status.started((gateway, stop))
        await stop.wait()


def _served(tool: Tool) -> ServedTool:
    return ServedTool(tool.name, tool.description or tool.name, tool.input_schema)


def _reporting(report: Report) -> ProgressFnT:
    """Return the function that takes the progress of a server, and passes it to `report`."""

    async def take(progress: float, total: float | None, message: str | None) -> None:
        report(message or "", int(progress), None if total is None else int(total))

    return take
