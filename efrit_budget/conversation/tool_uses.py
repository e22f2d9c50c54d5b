"""Rows of announced tool calls: each gets exactly one answer.

A row is found by the id of its use. Where that id comes again, or its result comes when the
conversation has gone on without it, the row that stands in the conversation is put aside: it
keeps its place and its answer, and the id is free for what comes now.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from efrit_budget.budget.estimate import estimate
from efrit_budget.conversation import calls
from efrit_budget.conversation.tool_call import ToolCall
from efrit_budget.errors import ConflictError, JsonObject
from efrit_budget.results.marks import own

ASIDE = "\x1f"
"""Stands between the id and the turn in the key of a row that was put aside."""


def plain_id(key: str) -> str:
    """Return the tool call's id as it is in the conversation."""
    return key.partition(ASIDE)[0]


def announce(
    connection: sqlite3.Connection, session_id: str, turn: int, blocks: Iterable[JsonObject]
) -> None:
    """Insert a row for each tool use of the reply.

    A result that came before its reply was told of is taken for the answer.
    """
    uses = [block for block in blocks if block.get("type") == "tool_use"]
    for ordinal, use in enumerate(uses):
        if not _may_keep_id(connection, session_id, use["id"], turn):
            set_aside(connection, session_id, use["id"])
        call = ToolCall(session_id, use["id"], use["name"], use.get("input", {}))
        calls.announce(connection, call, turn, ordinal)


def _may_keep_id(
    connection: sqlite3.Connection, session_id: str, tool_use_id: str, turn: int
) -> bool:
    """Return whether the row with this id belongs to this turn."""
    row = calls.get(connection, session_id, tool_use_id)
    waits = row is not None and row["turn"] is None and row["state"] != "gone"
    return row is None or row["turn"] == turn or waits


def set_aside(connection: sqlite3.Connection, session_id: str, tool_use_id: str) -> None:
    """Free the id of a row."""
    times = _times_set_aside(connection, session_id, tool_use_id)
    calls.rename(connection, (session_id, tool_use_id), f"{tool_use_id}{ASIDE}{times + 1}")


def is_set_aside(connection: sqlite3.Connection, session_id: str, tool_use_id: str) -> bool:
    """Return whether another answer to this id is in the conversation."""
    return _times_set_aside(connection, session_id, tool_use_id) > 0


def _times_set_aside(connection: sqlite3.Connection, session_id: str, tool_use_id: str) -> int:
    return calls.count_between(connection, session_id, *_aside_keys(tool_use_id))


def _aside_keys(tool_use_id: str) -> tuple[str, str]:
    """Return the range of keys of the rows put aside for an id."""
    return tool_use_id + ASIDE, tool_use_id + chr(ord(ASIDE) + 1)


def answer_unanswered(connection: sqlite3.Connection, session_id: str, clock: int) -> None:
    """Give every tool use without a result one that says so: the API wants each answered.

    What has no place in the conversation is out of it from here on.
    """
    for row in calls.unanswered(connection, session_id):
        text = (
            f"{row['tool']} was started, and its end was not seen. It may have done all, some or "
            "none of its work; check before calling it again."
            if row["begun"]
            else f"{row['tool']} was not run."
        )
        answer = own(text)
        key = (session_id, row["tool_use_id"])
        calls.answer(connection, key, answer, estimate(answer), clock)
    calls.evict_outside(connection, session_id)


def point_to_late_result(
    connection: sqlite3.Connection, session_id: str, tool_use_id: str, text: str
) -> None:
    """Make the answer that was put aside last point to the late result."""
    calls.point_latest(connection, session_id, _aside_keys(tool_use_id), text, estimate(text))


def get_row(connection: sqlite3.Connection, call: ToolCall) -> sqlite3.Row | None:
    """Return the row of a call; raise if its id was used for another call.

    A row that was only announced does not bind the arguments: a person may have changed them.
    Nor does an answer that says that the call was not run.
    """
    row = calls.get(connection, call.session_id, call.tool_use_id)
    started = row is not None and (row["begun"] is not None or has_result(row))
    key = (call.tool, call.canonical_arguments)
    if row is not None and started and (row["tool"], row["arguments"]) != key:
        raise ConflictError(
            f"tool_use_id {call.tool_use_id!r} was used before, for another call of {row['tool']}",
            data={"tool_use_id": call.tool_use_id},
        )
    return row


def has_result(row: sqlite3.Row) -> bool:
    """Return whether the call has a result; an answer in its place has no handle."""
    return row["number"] is not None


def is_answered(row: sqlite3.Row) -> bool:
    """Return whether the conversation went on without this result."""
    return row["ended"] is not None and not has_result(row)


def start(connection: sqlite3.Connection, call: ToolCall, owner: str) -> bool:
    """Record that a call with effects starts here; false if it was started before."""
    row = get_row(connection, call)
    if row is not None and (row["begun"] is not None or has_result(row)):
        return False
    if row is not None and is_answered(row):
        set_aside(connection, call.session_id, call.tool_use_id)
    calls.start(connection, call, owner)
    return True
