"""Tool uses as a reply announces them: each has a row, and in the end one answer in its place.

A row is found by the id of its use. Where that id comes again, or its result comes when the
conversation has gone on without it, the row that stands in the conversation is put aside: it
keeps its place and its answer, and the id is free for what comes now.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable

from efrit_budget.budget.estimate import estimate
from efrit_budget.errors import Json
from efrit_budget.results.marks import own

ASIDE = "\x1f"
"""Stands between the id and the turn in the key of a row that was put aside."""


def plain_id(key: str) -> str:
    """The id of a use as it stands in the conversation."""
    return key.partition(ASIDE)[0]


def announce(
    connection: sqlite3.Connection, session_id: str, turn: int, blocks: Iterable[dict[str, Json]]
) -> None:
    """A row for each tool use of the reply, so that each gets its share and its answer.

    A result that came before its reply was told of is taken for the answer.
    """
    uses = [block for block in blocks if block.get("type") == "tool_use"]
    for ordinal, use in enumerate(uses):
        if not _may_keep_its_id(connection, session_id, use["id"], turn):
            put_aside(connection, session_id, use["id"])
        connection.execute(
            "INSERT INTO calls (session_id, tool_use_id, tool, arguments, turn, ordinal, state)"
            " VALUES (?, ?, ?, ?, ?, ?, 'announced') ON CONFLICT DO UPDATE"
            " SET turn = excluded.turn, ordinal = excluded.ordinal WHERE turn IS NULL",
            (
                session_id,
                use["id"],
                use["name"],
                json.dumps(use.get("input", {}), sort_keys=True, separators=(",", ":")),
                turn,
                ordinal,
            ),
        )


def _may_keep_its_id(
    connection: sqlite3.Connection, session_id: str, tool_use_id: str, turn: int
) -> bool:
    """Whether the row of that id, if there is one, is this turn's, or waits for its reply."""
    row = connection.execute(
        "SELECT turn, state FROM calls WHERE session_id = ? AND tool_use_id = ?",
        (session_id, tool_use_id),
    ).fetchone()
    waits = row is not None and row["turn"] is None and row["state"] != "gone"
    return row is None or row["turn"] == turn or waits


def put_aside(connection: sqlite3.Connection, session_id: str, tool_use_id: str) -> None:
    """Free the id of a row."""
    connection.execute(
        "UPDATE calls SET tool_use_id = ? WHERE session_id = ? AND tool_use_id = ?",
        (
            f"{tool_use_id}{ASIDE}{_times_put_aside(connection, session_id, tool_use_id) + 1}",
            session_id,
            tool_use_id,
        ),
    )


def is_put_aside(connection: sqlite3.Connection, session_id: str, tool_use_id: str) -> bool:
    """Whether the conversation holds another answer to a use of this id."""
    return _times_put_aside(connection, session_id, tool_use_id) > 0


def _times_put_aside(connection: sqlite3.Connection, session_id: str, tool_use_id: str) -> int:
    row = connection.execute(
        "SELECT count(*) FROM calls WHERE session_id = ? AND tool_use_id > ? AND tool_use_id < ?",
        (session_id, *_keys_aside(tool_use_id)),
    ).fetchone()
    return int(row[0])


def _keys_aside(tool_use_id: str) -> tuple[str, str]:
    """What stands before and behind the keys of the rows that were put aside for an id."""
    return tool_use_id + ASIDE, tool_use_id + chr(ord(ASIDE) + 1)


def answer_the_unanswered(connection: sqlite3.Connection, session_id: str, clock: int) -> None:
    """Give every tool use without a result one that says so: the API wants each answered.

    What has no place in the conversation is out of it from here on.
    """
    unanswered = connection.execute(
        "SELECT tool_use_id, tool, begun FROM calls"
        " WHERE session_id = ? AND turn IS NOT NULL AND state = 'announced'",
        (session_id,),
    ).fetchall()
    for row in unanswered:
        text = (
            f"{row['tool']} was started, and its end was not seen. It may have done all, some or "
            "none of its work; check before calling it again."
            if row["begun"]
            else f"{row['tool']} was not run."
        )
        _answer(connection, (session_id, row["tool_use_id"]), own(text), clock)
    connection.execute(
        "UPDATE calls INDEXED BY calls_outside SET state = 'gone'"
        " WHERE session_id = ? AND turn IS NULL AND state IN ('full', 'compressed')",
        (session_id,),
    )


def _answer(connection: sqlite3.Connection, key: tuple[str, str], text: str, clock: int) -> None:
    raw = estimate(text)
    connection.execute(
        "UPDATE calls SET state = 'full', status = 'error', ended = ?, delivered = ?, raw = ?,"
        " compressed = ?, compressed_raw = ?, last_use = ?"
        " WHERE session_id = ? AND tool_use_id = ?",
        (time.time(), text, raw, text, raw, clock, *key),
    )


def say_it_came_late(
    connection: sqlite3.Connection, session_id: str, tool_use_id: str, text: str
) -> None:
    """What the answer that was put aside last shrinks to, now that its result is there."""
    first, last = _keys_aside(tool_use_id)
    connection.execute(
        "UPDATE calls SET compressed = ?1, compressed_raw = ?2 WHERE session_id = ?3"
        " AND tool_use_id > ?4 AND tool_use_id < ?5 AND number IS NULL AND state <> 'compressed'"
        " AND turn = (SELECT max(turn) FROM calls WHERE session_id = ?3"
        "   AND tool_use_id > ?4 AND tool_use_id < ?5)",
        (text, estimate(text), session_id, first, last),
    )
