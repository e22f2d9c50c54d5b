"""The tables `windows` and `calibration`. All their SQL stands here."""

import json
from dataclasses import asdict, dataclass, fields
from operator import itemgetter
from sqlite3 import Connection

from efrit_budget.budget.calibration import Calibration
from efrit_budget.budget.families import CLAUDE
from efrit_budget.errors import JsonObject


@dataclass(frozen=True)
class Window:
    """The state of a window besides its pieces; its clock advances with each turn and tool call."""

    session_id: str
    clock: int = 0
    next_number: int = 1
    epoch: int = 0
    turn: int = 0
    turn_ended: int = 0
    next_place: int = 0
    model: str | None = None
    endpoint: str | None = None
    """The endpoint of the latest request, as `Endpoint.as_text` stores it."""
    family: str = CLAUDE
    """The family of tokenizers in which the texts of the window are estimated."""
    client_system: str | None = None
    registered: str = "[]"
    """The tools that the client registered, as JSON."""
    served: str = "{}"
    """The tools of other MCP servers, as JSON: members by server, each with `key` and `tools`."""
    tool_set: str | None = None
    system: str | None = None
    tools: str | None = None
    system_raw: int = 0
    head: str | None = None
    head_raw: int = 0
    must_rewrite: int = 0
    """Not 0 if the next request must be a rewrite: 1 for user edits to apply, or `CAME_BACK`."""
    noticed: int = 0
    band: str = "ample"
    warned: str = "ample"
    in_prompt: int = 0
    """The tokens of the prompt without the results of the current turn."""
    kept: int = 0
    """The tokens that a rewrite would leave of `in_prompt`."""
    least: int = 0
    """The tokens that the largest possible rewrite would leave of the window."""
    carried: float = 0
    """What reading has cost, since the epoch began, of the tokens that a rewrite would have freed;
    in tokens at the price of the input."""
    left_window: int | None = None
    """The tokens saved by eviction and compression when the epoch began; None if not counted."""
    turn_tokens: int = 0
    """The tokens of the current turn's results; in a session without turns, of all results."""

    def offered_tools(self) -> list[JsonObject]:
        """Return the tool schemas of the latest request."""
        tools: list[JsonObject] = json.loads(self.tools or "[]")
        return tools

    def served_tools(self) -> list[JsonObject]:
        """Return the tools of other MCP servers, sorted by name."""
        servers: dict[str, JsonObject] = json.loads(self.served)
        tools = [tool for server in servers.values() for tool in server["tools"]]
        return sorted(tools, key=itemgetter("name"))


CAME_BACK = 2
"""The value of `must_rewrite` when an evicted piece came back, which no other user edit undoes."""
COLUMNS = tuple(field.name for field in fields(Window))


def load(connection: Connection, session_id: str) -> Window:
    """Return the window of a session, or a new one."""
    row = connection.execute("SELECT * FROM windows WHERE session_id = ?", (session_id,)).fetchone()
    return Window(session_id) if row is None else Window(**{name: row[name] for name in COLUMNS})


def save(connection: Connection, window: Window) -> None:
    """Save a window."""
    names = ", ".join(COLUMNS)
    marks = ", ".join(f":{name}" for name in COLUMNS)
    connection.execute(
        f"INSERT OR REPLACE INTO windows ({names}) VALUES ({marks})",  # noqa: S608  own names
        asdict(window),
    )


def empty(connection: Connection, session_id: str) -> None:
    """Reset the window of a session; handles go on from the next number, as none is used twice."""
    number = load(connection, session_id).next_number
    save(connection, Window(session_id, next_number=number))


def save_use(
    connection: Connection,
    session_id: str,
    *,
    clock: int,
    next_number: int,
    turn_tokens: int,
) -> None:
    """Save only those figures of a window that a tool call changes."""
    connection.execute(
        "INSERT INTO windows (session_id, clock, next_number, turn_tokens) VALUES (?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET clock = excluded.clock, next_number = excluded.next_number,"
        " turn_tokens = excluded.turn_tokens",
        (session_id, clock, next_number, turn_tokens),
    )


def calibration_of(
    connection: Connection, model: str, first: float, provider: str = ""
) -> Calibration:
    """Return the calibration of a provider's model, or a new one with the factor `first`."""
    statement = "SELECT * FROM calibration WHERE provider = ? AND model = ?"
    row = connection.execute(statement, (provider, model)).fetchone()
    if row is None:
        return Calibration(first)
    return Calibration(row["factor"], row["samples"], row["error"], row["frame"])


def save_calibration(
    connection: Connection, model: str, found: Calibration, provider: str = ""
) -> None:
    """Save the calibration of a provider's model."""
    connection.execute(
        "INSERT OR REPLACE INTO calibration (provider, model, factor, samples, error, frame)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        (provider, model, found.factor, found.samples, found.error, found.frame),
    )
