"""The sessions that calls of an MCP client name."""

import threading
from pathlib import Path

from efrit_budget.app import Application

LEAST_SHARE = 4
"""A session is compacted when less than one part in so many of its prompt's limit is available,
or less than one call may deliver."""


class ClientSessions:
    """The sessions of one project; each is opened when a call first names it."""

    def __init__(self, application: Application, root: Path, name: str | None) -> None:
        self._application = application
        self._root = root
        self._name = name
        self._lock = threading.Lock()
        self._opened: dict[str | None, str] = {}

    def id_of(self, name: str | None) -> str:
        """Return the id of the session with this name, by default that of the command line.

        A session that does not exist is opened; without any name, it has an id of its own. Raise
        if a session with this name belongs to another project.
        """
        with self._lock:
            name = name or self._name
            if name not in self._opened:
                params = {"root": str(self._root)} | ({"session_id": name} if name else {})
                opened = self._application.call("session/open", params)
                self._opened[name] = opened["session_id"]
            return self._opened[name]

    def opened(self, name: str | None) -> str | None:
        """Return the id of the session with this name if it is open, without waiting."""
        return self._opened.get(name or self._name)

    def forget(self, name: str | None) -> None:
        """Have the next call open the session with this name again; it was deleted or closed."""
        self._opened.pop(name or self._name, None)

    def compact_if_full(self, session_id: str) -> bool:
        """Evict all results of a session if its budget is nearly used up; return whether it was.

        The window of a session with turns is compacted by its turns alone.
        """
        with self._lock:
            status = self._application.call("session/status", {"session_id": session_id})
            budget, limits = status["budget"], status["limits"]
            needed = min(limits["per_tool_default"], budget["prompt_limit"] // LEAST_SHARE)
            if budget["turn"] or budget["available_for_tools"] >= needed:
                return False
            self._application.call("worklog/evict", {"session_id": session_id})
            return True
