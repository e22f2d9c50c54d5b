"""The MCP server on standard input and output."""

import gc
import logging
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    Tool,
)

from efrit_budget import __version__
from efrit_budget.app import Application
from efrit_budget.gateway.gateway import Gateway
from efrit_budget.mcp_server.calls import Reply, ToolCalls
from efrit_budget.mcp_server.instructions import instructions_text
from efrit_budget.mcp_server.prompts import CONTEXT_PACK, context_pack
from efrit_budget.mcp_server.resources import Resources
from efrit_budget.mcp_server.sessions import ClientSessions
from efrit_budget.mcp_server.threads import in_thread
from efrit_budget.mcp_server.tools import list_tools

Context = ServerRequestContext[Any]
Paging = PaginatedRequestParams | None

NAME, RECALL = "efrit-budget", "recall_result"
HOUR_MS = 3_600_000
"""How long clients may keep the list of tools, which never changes."""


@dataclass(frozen=True)
class Options:
    """What the person asked for on the command line."""

    session: str | None = None
    """The name of the default session; None for a new one."""
    structured: bool = False
    """Whether the facts on results are structured content, too."""
    project_tools: bool = True
    """Whether the sidecar's tools are offered; else only `recall_result` is."""


class McpServer:
    """Answers the requests of one MCP client by methods of the application."""

    def __init__(
        self,
        application: Application,
        root: Path,
        options: Options,
        gateway: Gateway | None = None,
    ) -> None:
        self._application = application
        self._root = root
        self._gateway = gateway
        self._sessions = ClientSessions(application, root, options.session)
        self._resources = Resources(application, self._sessions)
        own = list_tools(application)
        self._own = own if options.project_tools else {RECALL: own[RECALL]}
        structured = options.structured
        self._calls = ToolCalls(application, self._sessions, gateway, structured=structured)
        if options.session is not None:
            self._sessions.id_of(options.session)

    def protocol_server(self) -> Server[Any]:
        """Return the server of the SDK, which speaks each version of the protocol."""
        return Server(
            NAME,
            version=__version__,
            instructions=instructions_text(others=self._gateway is not None),
            lifespan=self._running,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
        )

    @asynccontextmanager
    async def _running(self, _server: Server[Any]) -> AsyncIterator[None]:
        """Run the other servers, if there are any, as long as the connection lasts."""
        async with nullcontext() if self._gateway is None else self._gateway.running():
            yield

    async def _tools(self) -> dict[str, Tool]:
        """Return all offered tools by name."""
        return self._own | ({} if self._gateway is None else await self._gateway.tools())

    async def _list_tools(self, _context: Context, _params: Paging) -> ListToolsResult:
        return ListToolsResult(tools=list((await self._tools()).values()), ttl_ms=HOUR_MS)

    async def _call_tool(self, context: Context, params: CallToolRequestParams) -> Reply:
        tools = await self._tools()
        if params.name not in tools:
            known = ", ".join(tools)
            raise MCPError(INVALID_PARAMS, f"no tool {params.name!r}; there are: {known}")
        return await self._calls.call(context, params)

    async def _list_resources(self, _context: Context, _params: Paging) -> ListResourcesResult:
        return await in_thread(self._resources.list)

    async def _list_templates(
        self, _context: Context, _params: Paging
    ) -> ListResourceTemplatesResult:
        return self._resources.templates()

    async def _read_resource(
        self, _context: Context, params: ReadResourceRequestParams
    ) -> ReadResourceResult:
        return await in_thread(partial(self._resources.read, params.uri))

    async def _list_prompts(self, _context: Context, _params: Paging) -> ListPromptsResult:
        return ListPromptsResult(prompts=[CONTEXT_PACK], ttl_ms=HOUR_MS)

    async def _get_prompt(
        self, _context: Context, params: GetPromptRequestParams
    ) -> GetPromptResult:
        if params.name != CONTEXT_PACK.name:
            raise MCPError(INVALID_PARAMS, f"no prompt {params.name!r}; there is context_pack")
        given = params.arguments or {}
        return await in_thread(partial(context_pack, self._application, self._root, given))


async def serve(server: McpServer, end: Callable[[], None]) -> None:
    """Serve over standard input and output until the input ends, or a signal ends the process."""
    protocol_server = server.protocol_server()
    options = protocol_server.create_initialization_options()
    logging.getLogger("mcp").setLevel(logging.CRITICAL)  # it would log texts of messages
    gc.freeze()  # what is loaded stays, so no collection in a call has to look at it
    async with anyio.create_task_group() as group, stdio_server() as (received, sent):
        with anyio.CancelScope() as connection:
            group.start_soon(_cancel_on_signal, connection)
            await protocol_server.run(received, sent, options)
        if connection.cancelled_caught:
            end()
            os._exit(0)  # the thread that reads standard input cannot be woken
        group.cancel_scope.cancel()


async def _cancel_on_signal(connection: anyio.CancelScope) -> None:
    """Cancel the connection when a signal asks the process to end."""
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            connection.cancel()
