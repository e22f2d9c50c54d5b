"""The lifecycle of a connection from `initialize` to `exit`, as in LSP.

The methods of the connection itself stand here and need only the standard library, so that
`initialize` has its reply before the application is loaded.
"""

from collections.abc import Callable
from enum import Enum
from pathlib import Path

from efrit_budget import PROTOCOL_VERSION, __version__
from efrit_budget.errors import InvalidRequestError, Json, field_error

OwnMethod = Callable[[dict[str, Json]], Json]

SERVER_NAME = "efrit-budget"
INITIALIZE = "initialize"
CANCEL = "$/cancelRequest"


class Stage(Enum):
    """The stages of a connection.

    A person who pipes requests in sends no `initialize`, so requests are answered in FRESH too;
    `initialize` tells each side the other's version.
    """

    FRESH = "fresh"
    READY = "ready"
    SHUT_DOWN = "shut down"


class Lifecycle:
    """The stage of a connection, and the methods that change it."""

    def __init__(self) -> None:
        self.stage = Stage.FRESH
        self.exit_asked = False
        self.handover: Path | None = None

    def methods(self) -> dict[str, OwnMethod]:
        """Return the functions of `initialize`, `initialized`, `shutdown` and `exit`, by name."""
        return {
            INITIALIZE: self._initialize,
            "initialized": lambda _: None,
            "shutdown": self._shutdown,
            "exit": self._exit,
        }

    def admits(self, method: str) -> bool:
        """Return whether `method` may run in this stage."""
        return self.stage is not Stage.SHUT_DOWN or method in ("exit", CANCEL)

    @property
    def exit_code(self) -> int:
        """The exit code, as in LSP: 0 after `shutdown` or without `exit`, else 1."""
        return 1 if self.exit_asked and self.stage is not Stage.SHUT_DOWN else 0

    def _initialize(self, params: dict[str, Json]) -> Json:
        """Return our versions; at a mismatch the client decides whether to go on."""
        if self.stage is not Stage.FRESH:
            raise InvalidRequestError("this connection is initialized already")
        version = params.get("protocol_version", PROTOCOL_VERSION)
        if not isinstance(version, int) or isinstance(version, bool):
            raise field_error("protocol_version", "it should be a whole number")
        handover = params.get("handover_folder")
        if not (handover is None or (isinstance(handover, str) and _is_whole(handover))):
            raise field_error("handover_folder", "it should be the absolute path of a folder")
        if version == PROTOCOL_VERSION:
            self.stage = Stage.READY
            self.handover = None if handover is None else Path(handover)
        return {
            "server": {"name": SERVER_NAME, "version": __version__},
            "protocol_version": PROTOCOL_VERSION,
            "capabilities": {
                "cancel": ["id", "tool_use_id"],
                "progress": True,
                "framings": ["header", "line"],
            },
        }

    def _shutdown(self, _params: dict[str, Json]) -> None:
        self.stage = Stage.SHUT_DOWN

    def _exit(self, _params: dict[str, Json]) -> None:
        self.exit_asked = True


def _is_whole(path: str) -> bool:
    return path.startswith("/") and "\0" not in path
