"""Count the use of results: a reply that takes up names of a result has used it."""

from sqlite3 import Connection

from efrit_budget.conversation import calls
from efrit_budget.conversation.blocks import leaves
from efrit_budget.conversation.pieces import PieceState
from efrit_budget.errors import JsonObject
from efrit_budget.results.names import LOOKED_AT, known_names, names


def count_uses(
    connection: Connection, session_id: str, blocks: list[JsonObject], clock: int
) -> None:
    """Set the last use of the results in full whose names the reply takes up."""
    said = "\n".join(text for block in blocks for text in _texts(block))
    taken = set(names(said[:LOOKED_AT]))
    if not taken:
        return
    for row in calls.list_texts(connection, session_id, [PieceState.FULL]):
        found = taken & known_names(row["delivered"]).keys()
        if found:
            calls.count_use(connection, session_id, row["number"], clock)
        taken -= found


def _texts(block: JsonObject) -> list[str]:
    if block["type"] == "tool_use":
        return [value for value in leaves(block["input"]) if isinstance(value, str)]
    return [block["text"]] if block["type"] == "text" else []
