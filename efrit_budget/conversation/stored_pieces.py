"""Load and change the stored pieces of the window: segments and calls together."""

import json
from collections.abc import Mapping, Sequence
from sqlite3 import Connection, Row

from efrit_budget.budget.calibration import Calibration
from efrit_budget.conversation import calls, segments
from efrit_budget.conversation.pieces import Content, Phase, Piece, PieceKey, PieceState, UserEdit
from efrit_budget.conversation.tool_uses import plain_id
from efrit_budget.errors import Json, JsonObject
from efrit_budget.results import store as results

EMPTY = Content("user", [])


def load_pieces(connection: Connection, session_id: str, calibration: Calibration) -> list[Piece]:
    """Return the pieces in the window, in order, with costs."""
    found = [
        _segment_piece(row, calibration) for row in segments.list_window(connection, session_id)
    ]
    full_places = _full_places(connection, session_id)
    found += [
        _call_piece(row, calibration, full_places)
        for row in calls.list_window(connection, session_id)
    ]
    return sorted(found, key=lambda piece: piece.key)


def _full_places(connection: Connection, session_id: str) -> dict[PieceKey, frozenset[PieceKey]]:
    """Return the keys of "Same as" lines, each with the keys of results that show its text."""
    found: dict[PieceKey, frozenset[PieceKey]] = {}
    for row in calls.list_full_places(connection, session_id):
        line = (row[0], Phase.RESULT.value, row[1])
        full_place = (
            frozenset() if row[2] is None else frozenset([(row[2], Phase.RESULT.value, row[3])])
        )
        found[line] = found.get(line, frozenset()) | full_place
    return found


def _segment_piece(row: Row, calibration: Calibration) -> Piece:
    state = PieceState(row["state"])
    full = calibration.tokens(row["raw"]) if row["exact"] is None else row["exact"]
    bare = calibration.tokens(row["bare_raw"])
    return Piece(
        turn=row["turn"],
        phase=Phase(row["phase"]),
        ordinal=0,
        state=state,
        tokens=full,
        least=min(full, bare),
        last_use=row["last_use"],
        shortest=None if row["short_raw"] is None else calibration.tokens(row["short_raw"]),
        place=row["place"],
    )


def _call_piece(
    row: Row, calibration: Calibration, full_places: Mapping[PieceKey, frozenset[PieceKey]]
) -> Piece:
    return Piece(
        turn=row["turn"],
        phase=Phase.RESULT,
        ordinal=row["ordinal"],
        state=PieceState(row["state"]),
        tokens=calibration.tokens(row["raw"], results=1) + row["exact"],
        least=calibration.tokens(row["compressed_raw"], results=1),
        last_use=row["last_use"],
        pinned=bool(row["pinned"]),
        place=row["place"],
        wish=None if row["wish"] is None else UserEdit(row["wish"]),
        full_copies=full_places.get((row["turn"], Phase.RESULT.value, row["ordinal"])),
    )


def raw_and_exact(connection: Connection, session_id: str) -> tuple[int, int]:
    """Return the estimated tokens of all pieces in the window, and the exactly known ones."""
    sums = [table.sum_prompt(connection, session_id) for table in (segments, calls)]
    return sum(raw for raw, _ in sums), sum(exact for _, exact in sums)


def tokens_saved(connection: Connection, session_id: str, calibration: Calibration) -> int:
    """Return the tokens saved by eviction and compression."""
    sums = (table.sum_shrunken(connection, session_id) for table in (segments, calls))
    return sum(
        max(0, calibration.tokens(row["raw"]) + row["exact"] - calibration.tokens(row["kept"]))
        for row in sums
    )


def set_states(
    connection: Connection, session_id: str, states: Mapping[PieceKey, PieceState]
) -> None:
    """Set the states of pieces."""
    for table in (calls, segments):
        table.update_pieces(connection, session_id, "state = ?", states)


def set_places(connection: Connection, session_id: str, places: Mapping[PieceKey, int]) -> None:
    """Record which message carries each piece, and clear user edits of these pieces."""
    calls.update_pieces(connection, session_id, "place = ?, wish = NULL", places)
    segments.update_pieces(connection, session_id, "place = ?", places)


def load_content(connection: Connection, session_id: str, piece: Piece) -> Content:
    """Return the role and the content blocks of a piece in its state."""
    if piece.phase is Phase.RESULT:
        row = calls.get_piece(connection, session_id, piece)
        has_blocks = piece.state is PieceState.FULL and row["exact"] > 0
        other_blocks = (
            results.get(connection, session_id, row["number"]).content if has_blocks else ()
        )
        return Content("user", [_tool_result(row, piece.state, other_blocks)])
    segment = segments.get(connection, session_id, piece.turn, piece.phase)
    return Content(segment["role"], json.loads(segment["content"])) if segment else EMPTY


def _tool_result(row: Row, state: PieceState, other_blocks: Sequence[Json]) -> JsonObject:
    text = row["compressed"] if state is PieceState.COMPRESSED else row["delivered"]
    blocks: list[Json] = [*other_blocks, *([{"type": "text", "text": text}] if text else [])]
    result: JsonObject = {
        "type": "tool_result",
        "tool_use_id": plain_id(row["tool_use_id"]),
        "content": blocks,
    }
    if row["status"] == "error":
        result["is_error"] = True
    return result
