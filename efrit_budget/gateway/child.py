"""Another server: its process, its tools, and calls of them."""

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import anyio
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp_types import (
    CONNECTION_CLOSED,
    REQUEST_TIMEOUT,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    Tool,
)
from pydantic import ValidationError

from efrit_budget.errors import EfritError, JsonObject
from efrit_budget.gateway.configuration import ServerEntry
from efrit_budget.project.processes import orphans, strays

log = logging.getLogger(__name__)

START_SECONDS = 120
"""How long a server may take to start; npx and its like install one at the first start."""
BEHIND = "BEHIND_EFRIT_BUDGET"
"""The variable by which a gateway knows that it is behind another one."""
MOST_PAGES = 100
"""The most pages of a list of tools that are read."""


class ChildError(EfritError):
    """Another server does not run, or did not reply.

    The first line of the message says what that means; the rest is the server's own text.
    """


class ChildServer:
    """Another server, started when it is needed and again when it has ended."""

    def __init__(self, entry: ServerEntry, call_seconds: float) -> None:
        self.name = entry.name
        self.instructions: str | None = None
        self.problem: str | None = None
        """Why the latest start failed; None if it did not."""
        self._entry = entry
        self._call_seconds = call_seconds
        self._client: Client | None = None
        self._tools: list[Tool] = []
        self._wanted = anyio.Event()
        self._start: anyio.Event | None = None
        """Set once the start that is wanted or under way has succeeded or failed."""

    @property
    def state(self) -> str:
        """The state of the server, in words to put behind its name."""
        if self._client is not None:
            return "runs"
        if self._start is not None:
            return "is starting"
        return f"does not run: {self.problem or 'it has ended'}"

    async def keep_running(self) -> None:
        """Start the server each time it is wanted, until this task is cancelled."""
        while True:
            await self._wanted.wait()
            self._wanted, start = anyio.Event(), self.want()
            try:
                await self._run()
            except Exception as error:  # noqa: BLE001  another server never ends ours
                cause = _innermost(error)
                log.warning("the MCP server %s failed: %s", self.name, type(cause).__name__)
                self.problem = str(cause) or type(cause).__name__
            finally:
                self._client = None
                self._settle(start)

    def want(self) -> anyio.Event:
        """Have the server started unless that is under way; return the event that ends the wait."""
        if self._start is None:
            self._start = anyio.Event()
            self._wanted.set()
        return self._start

    def _settle(self, start: anyio.Event) -> None:
        """End the wait for a start, if it has not ended."""
        if not start.is_set():
            self._start = None
            start.set()

    async def tools(self) -> list[Tool]:
        """Return the tools that the server has listed; start it first if it does not run.

        Return nothing if it cannot be started.
        """
        try:
            await self._connected()
        except ChildError:
            return []
        return self._tools

    async def call(
        self, tool: str, arguments: JsonObject, report: ProgressFnT | None
    ) -> CallToolResult:
        """Return the reply of a tool; raise if there is none, with the reason."""
        client = await self._connected()
        params = CallToolRequestParams(name=tool, arguments=arguments)
        try:
            return await client.session.send_request(
                CallToolRequest(params=params),
                CallToolResult,
                request_read_timeout_seconds=self._call_seconds,
                progress_callback=report,
            )
        except MCPError as error:
            raise ChildError(self._explain(error)) from error
        except ValidationError as error:
            raise ChildError(f"the server {self.name} sent a reply that is not valid") from error

    def _explain(self, error: MCPError) -> str:
        """Return what an error means in a line of ours, and below it what the server says."""
        if error.code == CONNECTION_CLOSED:
            return (
                f"the server {self.name} ended during this call; it may have done all, some or none"
                " of its work. The next call starts it again."
            )
        if error.code == REQUEST_TIMEOUT:
            return (
                f"the server {self.name} did not reply within {self._call_seconds:g} s, the time"
                " limit, and was told to stop"
            )
        return f"the server {self.name} refused the call (error {error.code}):\n{error.message}"

    async def _connected(self) -> Client:
        if self._client is None:
            await self.want().wait()
        if self._client is None:
            raise ChildError(f"the server {self.name} does not run:\n{self.problem}")
        return self._client

    async def _run(self) -> None:
        """Run the server until it ends; raise if it does not start in time."""
        orphans.watch()  # a server that does not end with its input ends with this process
        parameters = StdioServerParameters(
            command=self._entry.command,
            args=list(self._entry.args),
            env={**self._entry.env, BEHIND: "1", strays.MARK: strays.new_origin().mark},
            cwd=self._entry.cwd,
        )
        ended = anyio.Event()
        with anyio.CancelScope(deadline=anyio.current_time() + START_SECONDS) as scope:
            async with Client(_watched(parameters, partial(self._note_end, ended))) as client:
                tools = await _all_tools(client)
                scope.deadline = float("inf")
                self._client, self.instructions = client, client.instructions
                self._tools, self.problem = self._tools or tools, None
                self._settle(self.want())
                await ended.wait()
        if scope.cancelled_caught:
            raise TimeoutError(f"it did not start within {START_SECONDS} s")

    def _note_end(self, ended: anyio.Event) -> None:
        """Note that the server has ended, so that the next call does not reach for it."""
        self._client = None
        ended.set()


async def _all_tools(client: Client) -> list[Tool]:
    if client.server_capabilities.tools is None:
        return []
    listed = await client.list_tools()
    tools = list(listed.tools)
    for _ in range(MOST_PAGES):
        if listed.next_cursor is None:
            break
        listed = await client.list_tools(cursor=listed.next_cursor)
        tools += listed.tools
    return tools


@asynccontextmanager
async def _watched(
    parameters: StdioServerParameters, note_end: Callable[[], None]
) -> AsyncIterator[Any]:
    """Connect to a server that is started; call `note_end` when it closes its output."""
    async with stdio_client(parameters) as (received, sent), anyio.create_task_group() as group:
        passing, passed = anyio.create_memory_object_stream[SessionMessage | Exception](0)

        async def pass_on() -> None:
            with suppress(anyio.BrokenResourceError):  # nobody listens any more
                async with passing:
                    async for message in received:
                        await passing.send(message)
            note_end()

        group.start_soon(pass_on)
        yield passed, sent
        group.cancel_scope.cancel()


def _innermost(error: BaseException) -> BaseException:
    """Return an error, or the first one in a group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
