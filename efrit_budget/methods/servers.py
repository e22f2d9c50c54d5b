"""The `servers/*` methods: other MCP servers whose tools a session has.

What reads their configuration is imported when a session first needs it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from pydantic import Field

from efrit_budget.conversation import windows
from efrit_budget.errors import Json
from efrit_budget.gateway.sessions import SessionServers
from efrit_budget.gateway.wanted import OWN
from efrit_budget.methods.params import SessionParams
from efrit_budget.sessions.rows import Session
from efrit_budget.sessions.store import SessionStore
from efrit_budget.storage.database import Database
from efrit_budget.toolcalls.served import SessionTools
from efrit_budget.wire.method import Call, Lane, Method, Params

Text = Annotated[str, Field(max_length=100_000)]
Patterns = Annotated[list[Text], Field(max_length=1_000)]


class ServerParams(Params):
    """A server that the person configured."""

    command: Annotated[list[Text], Field(min_length=1, max_length=1_000)]
    env: dict[str, Text] = Field(default_factory=dict)
    cwd: Text | None = None


class StartParams(SessionParams):
    """The params of `servers/start`."""

    servers: dict[str, ServerParams] = Field(default_factory=dict)
    project: Annotated[str, Field(max_length=64)] | None = None
    """The digest of the `.mcp.json` whose servers the person lets run; None: they do not run."""
    variables: dict[str, Text] = Field(default_factory=dict)
    """Variables that the `.mcp.json` may name, besides those of the sidecar's environment."""
    allow: Patterns = Field(default_factory=list)
    deny: Patterns = Field(default_factory=list)
    short: bool = False
    seconds: Annotated[float, Field(ge=0.1, le=86_400)] = 120.0


class ServerMethods:
    """Starts and lists the servers of sessions."""

    def __init__(
        self,
        sessions: SessionStore,
        servers: SessionServers,
        tools: SessionTools,
        database: Database,
    ) -> None:
        self._sessions = sessions
        self._servers = servers
        self._tools = tools
        self._database = database

    def methods(self) -> list[Method]:
        """Return the methods of this family."""
        return [
            Method("servers/read", SessionParams, self._read, Lane.SLOW),
            Method("servers/start", StartParams, self._start, Lane.SLOW),
            Method("servers/list", SessionParams, self._list),
        ]

    def _read(self, params: SessionParams, _: Call) -> Json:
        """Return what the project's `.mcp.json` would start, for the person to decide about."""
        session = self._sessions.get_open(params.session_id)
        from efrit_budget.methods import server_choice as choice  # noqa: PLC0415  see above

        return choice.describe_project(Path(session.root))

    def _start(self, params: StartParams, call: Call) -> Json:
        """Start the servers of a session; offer their tools from the next turn on.

        The tools of a server that were offered before stay as they were.
        """
        session = self._sessions.get_open(params.session_id)
        self._sessions.check_owned(session.id)
        from efrit_budget.methods import server_choice as choice  # noqa: PLC0415  see above

        wanted, notes = choice.choose_servers(Path(session.root), params)
        if not wanted.entries:
            self._servers.stop(session.id)
            self._offer(session, {})
            return self._reply(session, notes)
        listed = self._servers.start(session.id, wanted, call.cancellation)
        with self._database.reading() as connection:
            before = json.loads(windows.load(connection, session.id).served)
        self._offer(session, choice.merge_tools(before, wanted, listed))
        return self._reply(session, notes)

    def _list(self, params: SessionParams, _: Call) -> Json:
        return self._reply(self._sessions.get(params.session_id), [])

    def _offer(self, session: Session, served: Mapping[str, Json]) -> None:
        """Store the tools of servers; if they changed, the next turn rewrites the window."""
        text = json.dumps(served)
        with self._database.writing() as connection:
            window = windows.load(connection, session.id)
            if window.served != text:
                windows.save(connection, replace(window, served=text))

    def _reply(self, session: Session, notes: Sequence[str]) -> Json:
        """Return the servers of a session with their states, and their tools."""
        with self._database.reading() as connection:
            window = windows.load(connection, session.id)
        states = self._servers.states(session.id)
        counts = {name: len(server["tools"]) for name, server in json.loads(window.served).items()}
        names = dict.fromkeys((*counts, *states))
        return {
            "session_id": session.id,
            "servers": [
                {
                    "name": name,
                    "state": states.get(name, "does not run"),
                    "tools": counts.get(name, 0),
                }
                for name in names
                if name != OWN
            ],
            "tools": [
                {"name": each.name, "policy": str(each.policy), "has_effects": each.has_effects}
                for each in self._tools.served(session.id)
            ],
            "notes": list(notes),
        }
