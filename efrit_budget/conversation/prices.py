"""Add up the tokens that the turns of a session used, and their price in dollars."""

import json
from collections import Counter
from collections.abc import Iterable
from sqlite3 import Connection

from efrit_budget.budget.calibration import counts_of
from efrit_budget.budget.prices import dollars
from efrit_budget.conversation import turns
from efrit_budget.conversation.end import usage_blocks
from efrit_budget.errors import JsonObject


def session_usage(connection: Connection, session_id: str, *, price: bool) -> JsonObject:
    """Return `usage`: the token counts that the API reported for all ended turns, added up.

    With `price`, return their price as `dollars` too, None if the price of a model is unknown.
    """
    usages = list(_usages(connection, session_id))
    whole: Counter[str] = Counter()
    for _, usage in usages:
        whole.update(usage)
    return {"usage": dict(whole)} | ({"dollars": _dollars(usages)} if price else {})


def _dollars(usages: Iterable[tuple[str, dict[str, int]]]) -> float | None:
    prices = [dollars(model, usage) for model, usage in usages]
    known = [price for price in prices if price is not None]
    return round(sum(known), 6) if len(known) == len(prices) else None


def _usages(connection: Connection, session_id: str) -> list[tuple[str, dict[str, int]]]:
    return [
        (row["model"], counts_of(usage))
        for row in turns.list_usage(connection, session_id)
        for usage in usage_blocks(json.loads(row["usage"]))
    ]
