"""Estimate the texts of a session anew when its next model has a tokenizer of another family."""

import json
from dataclasses import replace
from sqlite3 import Connection

from efrit_budget.budget.families import Family, family_named
from efrit_budget.conversation import calls, segments
from efrit_budget.conversation.blocks import (
    block_estimate,
    sendable_blocks,
    without_thinking,
)
from efrit_budget.conversation.bounds import Bounds
from efrit_budget.conversation.inputs import shortened
from efrit_budget.conversation.pieces import Phase, PieceKey
from efrit_budget.conversation.windows import Window
from efrit_budget.errors import JsonObject


def take_family(connection: Connection, window: Window, bounds: Bounds) -> tuple[Window, Bounds]:
    """Return window and bounds with the family of the model; convert estimates of another family.

    A window whose estimates were converted has no model, so that the next request is a rewrite.
    """
    old, new = family_named(window.family), family_named(bounds.model.family)
    if old == new:
        return window, bounds
    _convert_results(connection, window.session_id, old, new)
    _convert_messages(connection, window.session_id, old, new)
    return replace(window, family=new.name, model=None), replace(bounds, family=new)


def _convert_results(connection: Connection, session_id: str, old: Family, new: Family) -> None:
    """Convert the estimates of all results, also of those that are not in the window."""
    for tool_use_id in calls.list_ids(connection, session_id):
        row = calls.get(connection, session_id, tool_use_id)
        if row is not None:
            columns: JsonObject = {
                raw: new.from_claude(row[text] or "", old.to_claude(row[text] or "", row[raw]))
                for raw, text in (("raw", "delivered"), ("compressed_raw", "compressed"))
            }
            calls.update(connection, (session_id, tool_use_id), **columns)


def _convert_messages(connection: Connection, session_id: str, old: Family, new: Family) -> None:
    """Convert the estimates of user messages, notices and replies.

    The tokens of a reply that another model reported are forgotten.
    """
    columns: dict[str, dict[PieceKey, int | None]] = {
        name: {} for name in ("raw", "bare_raw", "short_raw", "exact")
    }
    for row in segments.list_session(connection, session_id):
        blocks = json.loads(row["content"])
        if row["phase"] == Phase.REPLY:
            blocks = sendable_blocks(blocks)
        key = (row["turn"], row["phase"], 0)
        columns["exact"][key] = None
        forms = {"raw": blocks, "bare_raw": without_thinking(blocks)}
        if row["short_raw"] is not None:
            forms["short_raw"] = shortened(blocks, row["turn"])
        for raw, some in forms.items():
            before, after = (
                sum(block_estimate(block, family) for block in some) for family in (old, new)
            )
            columns[raw][key] = -(-row[raw] * after // before) if before else row[raw]
    for name, values in columns.items():
        segments.update_pieces(connection, session_id, f"{name} = ?", values)
