"""What the turns of a session used and cost."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter

from efrit_budget.budget.calibration import counts_of
from efrit_budget.budget.prices import dollars
from efrit_budget.conversation import turns
from efrit_budget.conversation.end import usage_blocks


def session_usage(connection: sqlite3.Connection, session_id: str) -> dict[str, int]:
    """Return the summed usage of all turns."""
    whole: Counter[str] = Counter()
    for _, usage in _usages(connection, session_id):
        whole.update(usage)
    return dict(whole)


def session_dollars(connection: sqlite3.Connection, session_id: str) -> float | None:
    """Return the cost of the session, or None if a price is unknown."""
    prices = [dollars(model, usage) for model, usage in _usages(connection, session_id)]
    known = [price for price in prices if price is not None]
    return round(sum(known), 6) if len(known) == len(prices) else None


def _usages(connection: sqlite3.Connection, session_id: str) -> list[tuple[str, dict[str, int]]]:
    return [
        (row["model"], counts_of(usage))
        for row in turns.with_usage(connection, session_id)
        for usage in usage_blocks(json.loads(row["usage"]))
    ]
