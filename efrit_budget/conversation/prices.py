"""Add up the tokens that the turns of a session used, and their price in dollars."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from sqlite3 import Connection

from efrit_budget.budget.calibration import counts_of
from efrit_budget.budget.prices import dollars
from efrit_budget.conversation import turns
from efrit_budget.conversation.end import usage_blocks
from efrit_budget.errors import JsonObject

CACHED = ("cache_read_input_tokens", "cache_creation_input_tokens")
CACHE_SECONDS = 300
"""The seconds after which the API forgets a prompt that was not sent again."""
LEAST_LOSS, LEAST_SHARE = 1_000, 0.1
"""The least tokens, and the least share of the cached ones, whose loss is reported."""


def session_usage(connection: Connection, session_id: str, *, price: bool) -> JsonObject:
    """Return `usage`: the token counts that the API reported for all ended turns, added up.

    With `price`, return their price as `dollars` too, None if the price of a model is unknown.
    """
    usages = list(_usages(connection, session_id))
    whole: Counter[str] = Counter()
    for _, usage in usages:
        whole.update(usage)
    return {"usage": dict(whole)} | ({"dollars": _dollars(usages)} if price else {})


def cache_loss(connection: Connection, session_id: str, number: int) -> JsonObject | None:
    """Return what a turn paid for anew although the turn before had it cached, and why.

    Return None if that was little. `reason` is `model`, `rewrite`, `expired`, or None if nothing
    here explains it; `idle` are the seconds since the turn before ended.
    """
    turn = turns.get(connection, session_id, number)
    before = turns.find_latest_usage(connection, session_id, before=number)
    if turn is None or turn["usage"] is None or before is None:
        return None
    counts, old = (counts_of(json.loads(row["usage"])) for row in (turn, before))
    cached = sum(old.get(name, 0) for name in CACHED)
    lost = cached - counts.get("cache_read_input_tokens", 0)
    if lost < max(LEAST_LOSS, cached * LEAST_SHARE) or not _prompt(counts):
        return None
    idle = max(0.0, turn["begun"] - before["ended"])
    reason = None
    if turn["model"] != before["model"]:
        reason = "model"
    elif turn["epoch"] != before["epoch"]:
        reason = "rewrite"
    elif idle > CACHE_SECONDS:
        reason = "expired"
    anew = min(lost, _prompt(counts) - counts.get("cache_read_input_tokens", 0))
    kinds = [{name: anew} for name in ("cache_creation_input_tokens", "cache_read_input_tokens")]
    written, read = (dollars(turn["model"], kind) for kind in kinds)
    extra = None if written is None or read is None else round(written - read, 6)
    return {"tokens": anew, "dollars": extra, "reason": reason, "idle": round(idle)}


def _prompt(counts: Mapping[str, int]) -> int:
    return sum(counts.get(name, 0) for name in ("input_tokens", *CACHED))


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
