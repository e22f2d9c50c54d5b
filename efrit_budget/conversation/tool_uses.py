"""Give each tool use of a reply exactly one answer.

A row of `calls` is found by the id of its tool use. Where an id comes again, or a result comes when
the conversation has gone on without it, the row that the conversation has is set aside: it gets
another id, and keeps its place and its answer, so that the id is free for the new row.
"""

import time
from collections.abc import Iterable
from sqlite3 import Connection, Row

from efrit_budget.budget.families import Family
from efrit_budget.conversation import calls
from efrit_budget.conversation.pieces import PieceState
from efrit_budget.conversation.tool_call import ToolCall
from efrit_budget.errors import ConflictError, JsonObject
from efrit_budget.results.marks import own

ASIDE = "\x1f"
"""Separates the tool use's id from a count in the id of a row that was set aside."""


def plain_id(tool_use_id: str) -> str:
    """Return the tool use id that the conversation has, also for a row that was set aside."""
    return tool_use_id.partition(ASIDE)[0]


def announce(
    connection: Connection, session_id: str, turn: int, blocks: Iterable[JsonObject]
) -> None:
    """Insert a row for each tool use of a reply.

    A result that was stored before the reply becomes the answer to its tool use.
    """
    uses = [block for block in blocks if block.get("type") == "tool_use"]
    for ordinal, use in enumerate(uses):
        row = calls.get(connection, session_id, use["id"])
        if row is not None and row["turn"] != turn:
            is_early_result = row["turn"] is None and row["state"] != "gone"
            if not is_early_result:
                set_aside(connection, session_id, use["id"])
        call = ToolCall(session_id, use["id"], use["name"], use.get("input", {}))
        calls.announce(connection, call, turn, ordinal)


def set_aside(connection: Connection, session_id: str, tool_use_id: str) -> None:
    """Give the row with this id another id, so that a new row can have this one."""
    count = calls.count_between(connection, session_id, *_aside_ids(tool_use_id)) + 1
    calls.update(connection, (session_id, tool_use_id), tool_use_id=f"{tool_use_id}{ASIDE}{count}")


def is_set_aside(connection: Connection, session_id: str, tool_use_id: str) -> bool:
    """Return whether a row was set aside for this id, so that the conversation has an answer."""
    return calls.count_between(connection, session_id, *_aside_ids(tool_use_id)) > 0


def _aside_ids(tool_use_id: str) -> tuple[str, str]:
    """Return two ids between which the ids of all rows sort that were set aside for this id."""
    return tool_use_id + ASIDE, tool_use_id + chr(ord(ASIDE) + 1)


def answer_unanswered(connection: Connection, session_id: str, clock: int, family: Family) -> None:
    """Answer every tool use that has no result, as the API requires an answer to each.

    Results that belong to no turn are evicted.
    """
    for row in calls.list_unanswered(connection, session_id):
        text = own(
            f"{row['tool']} was started, and its end was not seen. It may have done all, some or "
            "none of its work; check before calling it again."
            if row["begun"]
            else f"{row['tool']} was not run."
        )
        raw, key = family.estimate(text), (session_id, row["tool_use_id"])
        columns: JsonObject = {
            "delivered": text,
            "raw": raw,
            "compressed": text,
            "compressed_raw": raw,
        }
        columns |= {"state": PieceState.FULL, "status": "error", "last_use": clock}
        columns |= {"ending": "stopped", "gist": "end not seen" if row["begun"] else "not run"}
        calls.update(connection, key, ended=time.time(), **columns)
    calls.evict_outside(connection, session_id)


def point_to_late_result(connection: Connection, call: ToolCall, text: str, family: Family) -> None:
    """Let `text`, which names the late result, replace the latest set-aside answer at a rewrite."""
    raw = family.estimate(text)
    ids = _aside_ids(call.tool_use_id)
    calls.point_latest(connection, call.session_id, ids, text, raw)


def get_row(connection: Connection, call: ToolCall) -> Row | None:
    """Return the row of a call, or None; raise if its id was used for another call.

    A row with a number has a result. A call that was announced, or answered without being run,
    may come with other arguments, as the person may have changed them.
    """
    row = calls.get(connection, call.session_id, call.tool_use_id)
    if row is None or (row["begun"] is None and row["number"] is None):
        return row
    if (row["tool"], row["arguments"]) != (call.tool, call.canonical_arguments):
        raise ConflictError(
            f"tool_use_id {call.tool_use_id!r} was used before, for another call of {row['tool']}",
            data={"tool_use_id": call.tool_use_id},
        )
    return row


def start(connection: Connection, call: ToolCall, owner: str) -> bool:
    """Record that a call with effects starts; return false if it was started before."""
    row = get_row(connection, call)
    if row is not None and (row["begun"] is not None or row["number"] is not None):
        return False
    if row is not None and row["ended"] is not None:  # it was answered without being run
        set_aside(connection, call.session_id, call.tool_use_id)
    calls.save(connection, call, owner=owner, begun=time.time())
    return True
