"""The tools of other MCP servers, as tools of the sessions that have them."""

from base64 import b64decode
from typing import Any

from pydantic import Field

from efrit_budget.conversation import windows
from efrit_budget.errors import JsonObject
from efrit_budget.gateway.sessions import SessionServers
from efrit_budget.results.marks import unquote
from efrit_budget.storage.database import Database
from efrit_budget.toolcalls.recorded import recorded_body
from efrit_budget.toolcalls.summary import head_and_tail
from efrit_budget.tools.base import (
    Arguments,
    Outcome,
    Policy,
    Resumable,
    Status,
    Tool,
    ToolContext,
    failure,
)
from efrit_budget.tools.registry import Registry

HELP = "tool_help"
NOT_STARTED = (
    "the MCP servers of this session do not run; they start with the person's next message"
)


class ServerArguments(Arguments):
    """The arguments of a tool of another server, which checks them itself."""

    given: JsonObject = Field(default_factory=dict)


class ServerTool(Tool):
    """A tool of another server; nothing is known about its effects that can be trusted."""

    arguments = ServerArguments
    policy = Policy.ASK
    has_effects = True

    def __init__(self, session_id: str, offered: JsonObject, servers: SessionServers) -> None:
        self.name = offered["name"]
        self.description = offered["description"]
        self._session_id = session_id
        self._servers = servers
        self._taken = offered["input_schema"].get("properties") or {}

    def parse(self, values: JsonObject) -> Arguments:
        """Return the arguments of a call, without those of ours that the tool does not take."""
        ours = Arguments.model_fields.keys() - self._taken
        token = values.get("continuation_token")
        if isinstance(token, str) and "continuation_token" in ours:
            return Arguments.model_construct(continuation_token=token)
        given = {name: value for name, value in values.items() if name not in ours}
        return ServerArguments(given=given)

    def run(self, arguments: Any, context: ToolContext) -> Outcome:
        """Call the tool in its server."""
        reply = self._servers.call(
            self._session_id, self.name, arguments.given, context.cancellation, context.progress
        )
        if reply is None:
            return failure(NOT_STARTED)
        body = recorded_body(reply.text, reply.own_lines, reply.items)
        status = Status.ERROR if reply.is_error else Status.SUCCESS
        message = reply.text if reply.own_lines else None
        images = [_decoded(image) for image in reply.images]
        return Outcome(status=status, message=message, body=body, images=images)

    def compress(self, _arguments: Any, outcome: Outcome) -> str:
        """Return a short text whole, else its two ends."""
        return head_and_tail(unquote(outcome.whole.text))


class HelpTool(ServerTool):
    """The tool of the gateway itself, which only reads what the servers said at their start."""

    policy = Policy.ALLOW
    has_effects = False


class SessionTools:
    """The tools of sessions: the sidecar's own, and those of the servers that a session has."""

    def __init__(self, registry: Registry, database: Database, servers: SessionServers) -> None:
        self._registry = registry
        self._database = database
        self._servers = servers

    def named(self, session_id: str, name: str) -> Tool:
        """Return the tool of this name; raise if the session has none."""
        if name not in self._registry:
            for tool in self.served(session_id):
                if tool.name == name:
                    return tool
        return self._registry.named(name)

    def resumable(self, name: str) -> Resumable:
        """Return the tool with this name; raise if it cannot continue its results."""
        return self._registry.resumable(name)

    def served(self, session_id: str) -> list[ServerTool]:
        """Return the tools of other servers that a session is offered."""
        with self._database.reading() as connection:
            offered = windows.load(connection, session_id).served_tools()
        return [
            (HelpTool if tool["name"] == HELP else ServerTool)(session_id, tool, self._servers)
            for tool in offered
        ]


def _decoded(image: str) -> bytes:
    """Return the bytes of an image in Base64; none, which is no image, if it is not Base64."""
    try:
        return b64decode(image, validate=True)
    except ValueError:
        return b""
