"""The envelope: the JSON reply to a tool call."""

from __future__ import annotations

import json
import sqlite3

from efrit_budget.conversation.tool_call import CallEntry
from efrit_budget.errors import JsonObject
from efrit_budget.results import store as results
from efrit_budget.results.body import Body
from efrit_budget.results.tokens import handle


def envelope_of(connection: sqlite3.Connection, row: sqlite3.Row) -> JsonObject:
    """Return the envelope of a stored call."""
    body = results.get(connection, row["session_id"], row["number"])
    return _envelope(row, json.loads(row["page"]), body)


def envelope(entry: CallEntry, body: Body) -> JsonObject:
    """Return the envelope of a new entry."""
    return _envelope(vars(entry), entry.page, body)


def _envelope(entry: sqlite3.Row | JsonObject, page: JsonObject, body: Body) -> JsonObject:
    envelope: JsonObject = {
        "status": entry["status"],
        "data": body.data_of(entry["page_start"], entry["page_end"]) | page,
        "text": entry["delivered"],
        "handle": handle(entry["number"]),
        "tokens": entry["tokens"],
    }
    if entry["exact"]:
        envelope["content"] = [*body.content, {"type": "text", "text": entry["delivered"]}]
    if entry["message"]:
        envelope["message"] = entry["message"]
    return envelope
