"""The tools offered to the model: the sidecar's and those the client registered."""

import json
from dataclasses import replace
from functools import cached_property
from operator import itemgetter
from typing import Annotated

from pydantic import Field

from efrit_budget.conversation import windows
from efrit_budget.conversation.prefix import Offer
from efrit_budget.conversation.windows import Window
from efrit_budget.errors import Json, JsonObject, field_error
from efrit_budget.methods.params import SessionParams
from efrit_budget.sessions.rows import Session
from efrit_budget.sessions.store import SessionStore
from efrit_budget.storage.database import Database
from efrit_budget.tools.base import Policy
from efrit_budget.tools.registry import NAME_PATTERN, Registry, schema
from efrit_budget.tools.validation import input_problem, schema_problem
from efrit_budget.wire.method import Call, Lane, Method, Params


class RegisteredTool(Params):
    """A tool that runs in the client."""

    name: Annotated[str, Field(pattern=f"^{NAME_PATTERN.pattern}$")]
    description: Annotated[str, Field(min_length=1)]
    input_schema: JsonObject
    policy: Policy = Policy.ASK


class RegisterParams(SessionParams):
    """The params of `tools/register`."""

    tools: list[RegisteredTool]


class Offers:
    """The tools offered in each session."""

    def __init__(self, registry: Registry, sessions: SessionStore, database: Database) -> None:
        self._registry = registry
        self._sessions = sessions
        self._database = database

    @cached_property
    def _own(self) -> list[Offer]:
        """The sidecar's tools, with schemas built on first use."""
        return [
            Offer(tool.name, tool.description, schema(tool.arguments), tool.hint)
            for tool in self._registry
        ]

    def methods(self) -> list[Method]:
        """Return the method that registers the client's tools."""
        return [Method("tools/register", RegisterParams, self._register, Lane.WRITING)]

    def of(self, session: Session) -> list[Offer]:
        """Return the session's tools: the sidecar's, those of other MCP servers, the client's.

        Each part is sorted by name. A tool of a server whose name another one has is left out.
        """
        window = self._window(session)
        registered = json.loads(window.registered)
        taken = self._own_names.union(session.denied, (tool["name"] for tool in registered))
        ours = [offer for offer in self._own if offer.name not in session.denied]
        served = [tool for tool in window.served_tools() if tool["name"] not in taken]
        theirs = [
            Offer(tool["name"], tool["description"], tool["input_schema"])
            for tool in (*served, *registered)
        ]
        return [*ours, *theirs]

    def misfits(self, session: Session, content: list[JsonObject]) -> list[JsonObject]:
        """Return the uses of tools that are not there, and of others' tools with invalid input.

        Each has its problem.
        """
        window = self._window(session)
        others = (*window.served_tools(), *json.loads(window.registered))
        schemas = {tool["name"]: tool["input_schema"] for tool in others}
        found: list[JsonObject] = []
        for block in content:
            if block["type"] != "tool_use" or block["name"] in self._own_names:
                continue
            if block["name"] in schemas:
                problem = input_problem(schemas[block["name"]], block["input"])
            else:
                names = ", ".join(tool["name"] for tool in window.offered_tools())
                problem = f"there is no such tool; there are: {names or 'none'}"
            if problem is not None:
                found.append({"tool_use_id": block["id"], "problem": problem})
        return found

    def _window(self, session: Session) -> Window:
        with self._database.reading() as connection:
            return windows.load(connection, session.id)

    @cached_property
    def _own_names(self) -> set[str]:
        return {tool.name for tool in self._registry}

    def _register(self, params: RegisterParams, _: Call) -> Json:
        """Replace the client's tools; if they changed, the next turn rewrites the window."""
        session = self._sessions.get_open(params.session_id)
        names = [tool.name for tool in params.tools]
        for index, name in enumerate(names):
            if name in self._own_names or name in names[:index]:
                raise field_error(f"tools.{index}.name", f"two tools are named {name!r}")
            problem = schema_problem(params.tools[index].input_schema)
            if problem is not None:
                raise field_error(f"tools.{index}.input_schema", problem)
        tools = sorted(
            (tool.model_dump(mode="json") for tool in params.tools), key=itemgetter("name")
        )
        with self._database.writing() as connection:
            window = windows.load(connection, session.id)
            windows.save(connection, replace(window, registered=json.dumps(tools)))
        return {"session_id": session.id, "registered": sorted(names)}
