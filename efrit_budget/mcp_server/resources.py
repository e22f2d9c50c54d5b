"""The resources of the MCP server: stored results, and the budget."""

import json
import re

from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)

from efrit_budget.app import Application
from efrit_budget.errors import EfritError, JsonObject
from efrit_budget.mcp_server.sessions import ClientSessions

MOST_LISTED = 100
"""The most results that are listed, the newest first; others can be read by their handles."""
MOST_DESCRIBED = 200
"""The most characters of a call's arguments in the description of its result."""
URI = re.compile(r"efrit://([a-z0-9-]+)/(?:(budget)|results/(r[0-9]+))")


class Resources:
    """Lists and reads the stored results and the budget of sessions."""

    def __init__(self, application: Application, sessions: ClientSessions) -> None:
        self._application = application
        self._sessions = sessions

    def list(self) -> ListResourcesResult:
        """Return the budget and the newest results of the default session.

        Return nothing before its first call, so that clients which only look open no session.
        """
        session_id = self._sessions.opened(None)
        if session_id is None:
            return ListResourcesResult(resources=[])
        params = {"session_id": session_id, "limit": MOST_LISTED}
        entries: list[JsonObject] = self._application.call("worklog/list", params)["entries"]
        by_handle = {entry["handle"]: entry for entry in reversed(entries) if entry["handle"]}
        results = [_result(session_id, entry) for entry in reversed(by_handle.values())]
        budget = Resource(
            name="budget",
            uri=f"efrit://{session_id}/budget",
            description="What of the token budget is used, and what is left",
            mime_type="application/json",
        )
        return ListResourcesResult(resources=[budget, *results])

    def templates(self) -> ListResourceTemplatesResult:
        """Return the forms of the addresses."""
        result = ResourceTemplate(
            name="result",
            uri_template="efrit://{session}/results/{handle}",
            description="A result as it was stored, whole, by its handle such as r7",
            mime_type="text/plain",
        )
        budget = ResourceTemplate(
            name="budget",
            uri_template="efrit://{session}/budget",
            description="The token budget of a session",
            mime_type="application/json",
        )
        return ListResourceTemplatesResult(resource_templates=[result, budget])

    def read(self, uri: str) -> ReadResourceResult:
        """Return what is at an address; raise if there is nothing."""
        matched = URI.fullmatch(uri)
        if matched is None:
            raise MCPError(INVALID_PARAMS, f"no resource {uri}; resources/list names some")
        name, budget, handle = matched.groups()
        try:
            session_id = self._sessions.id_of(name)
            if budget:
                status = self._application.call("session/status", {"session_id": session_id})
                text, mime_type = json.dumps(status["budget"], indent=2), "application/json"
            else:
                params = {"session_id": session_id, "handle": handle}
                text = self._application.call("worklog/show", params)["text"]
                mime_type = "text/plain"
        except EfritError as error:
            raise MCPError(INVALID_PARAMS, f"{uri}: {error.message}") from error
        contents = TextResourceContents(uri=uri, text=text, mime_type=mime_type)
        return ReadResourceResult(contents=[contents])


def _result(session_id: str, entry: JsonObject) -> Resource:
    handle = entry["handle"]
    return Resource(
        name=f"{handle} {entry['tool']}",
        uri=f"efrit://{session_id}/results/{handle}",
        description=json.dumps(entry["arguments"], ensure_ascii=False)[:MOST_DESCRIBED],
        mime_type="text/plain",
    )
