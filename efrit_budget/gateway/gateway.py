"""The gateway: tools of other servers, whose results are recorded in our ledger."""

import json
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager

import anyio
from mcp.shared.dispatcher import ProgressFnT
from mcp_types import CallToolResult, Tool, ToolAnnotations

from efrit_budget.errors import JsonObject
from efrit_budget.gateway.bodies import Recorded, own_failure
from efrit_budget.gateway.child import ChildError, ChildServer
from efrit_budget.gateway.configuration import ServerEntry, check_names
from efrit_budget.gateway.offers import Choice, Offer, properties_of

HELP = "tool_help"
LIST_SECONDS = 25
"""How long the list of tools waits for servers; Claude Code gives a server 30 seconds to start."""


class Gateway:
    """Other servers and those of their tools that are offered."""

    def __init__(self, entries: Sequence[ServerEntry], choice: Choice, call_seconds: float) -> None:
        check_names(entries)
        self._children = [ChildServer(entry, call_seconds) for entry in entries]
        self._choice = choice
        self._listing = anyio.Lock()
        self._offers: dict[str, Offer] | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Start the servers, and again when they end; stop them at the end of the block."""
        async with anyio.create_task_group() as group:
            for child in self._children:
                group.start_soon(child.keep_running)
                child.want()
            yield
            group.cancel_scope.cancel()

    async def tools(self) -> dict[str, Tool]:
        """Return the offered tools by name: those of all servers that started, and `tool_help`.

        The list is the same as long as the process lives.
        """
        offers = await self._all_offers()
        listed = {name: offer.offered for name, offer in offers.items()}
        return listed | {HELP: help_tool(self._choice.added)}

    async def tools_by_server(self) -> dict[str, list[Tool]]:
        """Return the offered tools of each server; servers that listed none are asked anew."""
        async with self._listing:
            self._offers = None
        listed: dict[str, list[Tool]] = {child.name: [] for child in self._children}
        for offer in (await self._all_offers()).values():
            listed[offer.child.name].append(offer.offered)
        return listed

    def states(self) -> dict[str, str]:
        """Return the state of each server in words, by its name."""
        return {child.name: child.state for child in self._children}

    async def call(
        self, name: str, arguments: JsonObject, report: ProgressFnT | None
    ) -> CallToolResult | Recorded:
        """Return the reply of an offered tool, or what is to be recorded without one."""
        offers = await self._all_offers()
        if name == HELP:
            return self._help(offers, arguments.get("name"))
        offer = offers.get(name)
        if offer is None:
            return own_failure(f"{name} is not offered by its server now; tool_help shows why")
        try:
            given = offer.arguments_for_child(arguments)
            return await offer.child.call(offer.tool.name, given, report)
        except ChildError as error:
            line, _, found = error.message.partition("\n")
            return own_failure(line, found)

    def has_own_session(self, name: str) -> bool:
        """Return whether a tool that was listed has an argument `session` of its own."""
        offer = (self._offers or {}).get(name)
        return offer is not None and "session" in properties_of(offer.tool.input_schema)

    async def _all_offers(self) -> dict[str, Offer]:
        async with self._listing:
            if self._offers is None:
                offers: dict[str, Offer] = {}
                for child, tools in (await self._started_tools()).items():
                    _add(offers, self._choice.offers(child, tools))
                self._offers = offers
            return self._offers

    async def _started_tools(self) -> dict[ChildServer, list[Tool]]:
        """Return the tools of each server that starts in time; clients do not wait for long."""
        listed: dict[ChildServer, list[Tool]] = {child: [] for child in self._children}

        async def list_tools(child: ChildServer) -> None:
            listed[child] = await child.tools()

        with anyio.move_on_after(LIST_SECONDS):
            async with anyio.create_task_group() as group:
                for child in self._children:
                    group.start_soon(list_tools, child)
        return listed

    def _help(self, offers: dict[str, Offer], name: object) -> Recorded:
        if name is None:
            return Recorded("\n".join(self._server_lines(offers)))
        offer = offers.get(str(name))
        if offer is None:
            return own_failure(f"there is no tool {str(name)!r}; there are: {', '.join(offers)}")
        schema = json.dumps(offer.tool.input_schema, indent=1, ensure_ascii=False)
        return Recorded(f"{name}\n{offer.tool.description or ''}\n{schema}")

    def _server_lines(self, offers: dict[str, Offer]) -> Iterable[str]:
        for child in self._children:
            count = sum(offer.child is child for offer in offers.values())
            yield f"{child.name} {child.state}, {count} tools offered"
            if child.instructions:
                yield child.instructions


def _add(offers: dict[str, Offer], added: Iterable[Offer]) -> None:
    """Add offers by name; one whose name is taken is left out, as calls could not reach both."""
    for offer in added:
        offers.setdefault(offer.offered.name, offer)


def help_tool(added: JsonObject) -> Tool:
    """Return the tool that shows whole descriptions, and the servers; it takes `added`, too."""
    return Tool(
        name=HELP,
        description=(
            "Show a tool's whole description and schema by its name; without a name, the servers "
            "behind this one, with their instructions."
        ),
        input_schema={"type": "object", "properties": {"name": {"type": "string"}, **added}},
        annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False),
    )
