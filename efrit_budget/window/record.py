"""A session's window in the database: its row, its pieces, and their contents."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace

from efrit_budget.budget.calibration import Calibration
from efrit_budget.errors import Json
from efrit_budget.results import store as results
from efrit_budget.window.pieces import Content, Key, Phase, Piece, State, Wish
from efrit_budget.window.uses import plain_id


@dataclass(frozen=True)
class Window:
    """What is known of the next prompt beside its pieces."""

    session_id: str
    clock: int = 0
    next_number: int = 1
    epoch: int = 0
    turn: int = 0
    turn_ended: int = 0
    next_place: int = 0
    model: str | None = None
    client_system: str | None = None
    registered: str = "[]"
    tool_set: str | None = None
    system: str | None = None
    tools: str | None = None
    system_raw: int = 0
    head: str | None = None
    head_raw: int = 0
    must_rewrite: int = 0
    """Whether the next request is to be a rewrite, whatever its size; see `CAME_BACK`."""
    noticed: int = 0
    band: str = "ample"
    warned: str = "ample"
    in_prompt: int = 0
    """The size of the prompt without the results of the turn in hand."""
    kept: int = 0
    """The same after a compaction."""
    least: int = 0
    """The same after everything that can give way has."""
    left_window: int | None = None
    """What had left the window when the epoch began; None until it is counted."""
    turn_tokens: int = 0
    """What the results of the turn in hand cost; all results where there are no turns."""

    def ticked(self) -> Window:
        """The window one use later."""
        return replace(self, clock=self.clock + 1)


CAME_BACK = 2
"""Why it must: what had left is back, and stays so whatever else is wished."""
COLUMNS = tuple(field.name for field in fields(Window))


def load(connection: sqlite3.Connection, session_id: str) -> Window:
    """The window of a session; a new one where none was kept yet."""
    row = connection.execute("SELECT * FROM windows WHERE session_id = ?", (session_id,)).fetchone()
    return Window(session_id) if row is None else Window(**{name: row[name] for name in COLUMNS})


def save(connection: sqlite3.Connection, window: Window) -> None:
    """Keep a window."""
    names = ", ".join(COLUMNS)
    marks = ", ".join(f":{name}" for name in COLUMNS)
    connection.execute(
        f"INSERT OR REPLACE INTO windows ({names}) VALUES ({marks})",  # noqa: S608  own names
        asdict(window),
    )


def registering(window: Window, tools: str) -> Window:
    """The window with other tools of the client."""
    return replace(window, registered=tools)


def save_use(connection: sqlite3.Connection, window: Window) -> None:
    """Keep what a call changes of a window, and leave its long texts alone."""
    connection.execute(
        "UPDATE windows SET clock = ?, next_number = ?, turn_tokens = ? WHERE session_id = ?",
        (window.clock, window.next_number, window.turn_tokens, window.session_id),
    )


def calibration_of(connection: sqlite3.Connection, model: str, first: float) -> Calibration:
    """What is known of a model; its first factor where nothing is."""
    row = connection.execute("SELECT * FROM calibration WHERE model = ?", (model,)).fetchone()
    if row is None:
        return Calibration(first)
    return Calibration(row["factor"], row["samples"], row["error"])


def keep_calibration(connection: sqlite3.Connection, model: str, found: Calibration) -> None:
    """Remember what was learnt of a model."""
    connection.execute(
        "INSERT OR REPLACE INTO calibration (model, factor, samples, error) VALUES (?, ?, ?, ?)",
        (model, found.factor, found.samples, found.error),
    )


def pieces(
    connection: sqlite3.Connection, session_id: str, calibration: Calibration
) -> list[Piece]:
    """The pieces in the window, in order, costed."""
    found = [
        _segment_piece(row, calibration)
        for row in connection.execute(
            "SELECT turn, phase, raw, bare_raw, exact, state, last_use, place FROM segments"
            " WHERE session_id = ? AND state <> 'gone'",
            (session_id,),
        )
    ]
    standing = _standing_on(connection, session_id)
    found += [
        _call_piece(row, calibration, standing)
        for row in connection.execute(
            "SELECT turn, ordinal, raw, exact, compressed_raw, state, last_use, pinned, place, wish"
            " FROM calls"
            " WHERE session_id = ? AND state IN ('full', 'compressed') AND turn IS NOT NULL",
            (session_id,),
        )
    ]
    return sorted(found, key=lambda piece: piece.key)


def _standing_on(connection: sqlite3.Connection, session_id: str) -> dict[Key, frozenset[Key]]:
    """For each line that stands for a text shown elsewhere, where that is shown in full."""
    found: dict[Key, frozenset[Key]] = {}
    for row in connection.execute(
        "SELECT line.turn, line.ordinal, shown.turn, shown.ordinal FROM calls AS line"
        " LEFT JOIN calls AS shown ON shown.session_id = line.session_id"
        "   AND shown.number = line.same_as AND shown.same_as IS NULL"
        "   AND shown.state = 'full' AND shown.turn IS NOT NULL"
        "   AND shown.page_start <= line.page_start AND shown.page_end >= line.page_end"
        " WHERE line.session_id = ? AND line.state IN ('full', 'compressed')"
        "   AND line.turn IS NOT NULL AND line.same_as IS NOT NULL",
        (session_id,),
    ):
        line = (row[0], Phase.RESULT.value, row[1])
        shown = frozenset() if row[2] is None else frozenset([(row[2], Phase.RESULT.value, row[3])])
        found[line] = found.get(line, frozenset()) | shown
    return found


def _segment_piece(row: sqlite3.Row, calibration: Calibration) -> Piece:
    state = State(row["state"])
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
        place=row["place"],
    )


def _call_piece(
    row: sqlite3.Row, calibration: Calibration, standing: Mapping[Key, frozenset[Key]]
) -> Piece:
    return Piece(
        turn=row["turn"],
        phase=Phase.RESULT,
        ordinal=row["ordinal"],
        state=State(row["state"]),
        tokens=calibration.tokens(row["raw"]) + row["exact"],
        least=calibration.tokens(row["compressed_raw"]),
        last_use=row["last_use"],
        pinned=bool(row["pinned"]),
        place=row["place"],
        wish=None if row["wish"] is None else Wish(row["wish"]),
        stands_on=standing.get((row["turn"], Phase.RESULT.value, row["ordinal"])),
    )


def raw_and_exact(connection: sqlite3.Connection, session_id: str) -> tuple[int, int]:
    """What of the prompt's pieces is estimated, before calibration, and what is known."""
    segments = connection.execute(
        "SELECT coalesce(sum(CASE WHEN state = 'compressed' THEN bare_raw"
        "   WHEN exact IS NULL THEN raw ELSE 0 END), 0),"
        " coalesce(sum(CASE WHEN state = 'full' THEN coalesce(exact, 0) ELSE 0 END), 0)"
        " FROM segments WHERE session_id = ? AND state <> 'gone'",
        (session_id,),
    ).fetchone()
    calls = connection.execute(
        "SELECT coalesce(sum(CASE WHEN state = 'full' THEN raw ELSE compressed_raw END), 0),"
        " coalesce(sum(CASE WHEN state = 'full' THEN exact ELSE 0 END), 0)"
        " FROM calls WHERE session_id = ?"
        " AND state IN ('full', 'compressed') AND turn IS NOT NULL",
        (session_id,),
    ).fetchone()
    return segments[0] + calls[0], segments[1] + calls[1]


def left(connection: sqlite3.Connection, session_id: str, calibration: Calibration) -> int:
    """What the replies and results that left the window, or shrank in it, had cost there more.

    Together with what stands in it now that is all that the model has written and been given.
    """
    sums = connection.execute(
        "SELECT coalesce(sum(CASE WHEN exact IS NULL THEN raw ELSE 0 END), 0) AS raw,"
        " coalesce(sum(exact), 0) AS exact,"
        " coalesce(sum(CASE WHEN state = 'compressed' THEN bare_raw ELSE 0 END), 0) AS kept"
        " FROM segments WHERE session_id = ?1 AND phase = ?2 AND state <> 'full'"
        " UNION ALL SELECT coalesce(sum(raw), 0), coalesce(sum(exact), 0),"
        " coalesce(sum(CASE WHEN state = 'compressed' THEN compressed_raw ELSE 0 END), 0)"
        " FROM calls WHERE session_id = ?1 AND turn IS NOT NULL"
        " AND state IN ('compressed', 'gone')",
        (session_id, Phase.REPLY),
    ).fetchall()
    return sum(
        max(0, calibration.tokens(row["raw"]) + row["exact"] - calibration.tokens(row["kept"]))
        for row in sums
    )


def set_states(
    connection: sqlite3.Connection,
    session_id: str,
    states: Mapping[tuple[int, int, int], State],
) -> None:
    """Put the pieces into the states of a plan."""
    calls = [
        (state, session_id, turn, ordinal)
        for (turn, phase, ordinal), state in states.items()
        if phase == Phase.RESULT
    ]
    segments = [
        (state, session_id, turn, phase)
        for (turn, phase, _), state in states.items()
        if phase != Phase.RESULT
    ]
    connection.executemany(
        "UPDATE calls SET state = ? WHERE session_id = ? AND turn = ? AND ordinal = ?", calls
    )
    connection.executemany(
        "UPDATE segments SET state = ? WHERE session_id = ? AND turn = ? AND phase = ?", segments
    )


def set_places(
    connection: sqlite3.Connection, session_id: str, places: Iterable[tuple[Piece, int]]
) -> None:
    """Say which message carries each piece; what a person wished for it is seen to by that."""
    given = list(places)
    connection.executemany(
        "UPDATE calls SET place = ?, wish = NULL WHERE session_id = ? AND turn = ? AND ordinal = ?",
        [
            (place, session_id, piece.turn, piece.ordinal)
            for piece, place in given
            if piece.phase is Phase.RESULT
        ],
    )
    connection.executemany(
        "UPDATE segments SET place = ? WHERE session_id = ? AND turn = ? AND phase = ?",
        [
            (place, session_id, piece.turn, piece.phase)
            for piece, place in given
            if piece.phase is not Phase.RESULT
        ],
    )


def forget_places(connection: sqlite3.Connection, session_id: str) -> None:
    """A rewrite sends everything anew."""
    connection.execute(
        "UPDATE calls SET place = NULL, wish = NULL"
        " WHERE session_id = ? AND (place IS NOT NULL OR wish IS NOT NULL)",
        (session_id,),
    )
    connection.execute(
        "UPDATE segments SET place = NULL WHERE session_id = ? AND place IS NOT NULL", (session_id,)
    )


def has_wishes(connection: sqlite3.Connection, session_id: str) -> bool:
    """Whether a person wished something for a piece that was sent."""
    found = connection.execute(
        "SELECT 1 FROM calls WHERE session_id = ? AND wish IS NOT NULL AND place IS NOT NULL",
        (session_id,),
    ).fetchone()
    return found is not None


def content(connection: sqlite3.Connection, session_id: str, piece: Piece) -> Content:
    """The API's blocks of a piece, as it stands."""
    if piece.phase is Phase.RESULT:
        row = _call(connection, session_id, piece)
        shown = piece.state is State.FULL and row["exact"] > 0
        beside = results.get(connection, session_id, row["number"]).content if shown else ()
        return Content("user", [_tool_result(row, piece.state, beside)])
    row = connection.execute(
        "SELECT role, content FROM segments WHERE session_id = ? AND turn = ? AND phase = ?",
        (session_id, piece.turn, piece.phase),
    ).fetchone()
    return Content(row["role"], json.loads(row["content"]))


def _call(connection: sqlite3.Connection, session_id: str, piece: Piece) -> sqlite3.Row:
    row: sqlite3.Row = connection.execute(
        "SELECT session_id, number, tool_use_id, status, delivered, exact, compressed FROM calls"
        " WHERE session_id = ? AND turn = ? AND ordinal = ?",
        (session_id, piece.turn, piece.ordinal),
    ).fetchone()
    return row


def _tool_result(row: sqlite3.Row, state: State, beside: Sequence[Json]) -> dict[str, Json]:
    text = row["compressed"] if state is State.COMPRESSED else row["delivered"]
    blocks: list[Json] = [*beside, *([{"type": "text", "text": text}] if text else [])]
    result: dict[str, Json] = {
        "type": "tool_result",
        "tool_use_id": plain_id(row["tool_use_id"]),
        "content": blocks,
    }
    if row["status"] == "error":
        result["is_error"] = True
    return result
