"""Add up the tokens that the turns of a session used, and their price in dollars."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from sqlite3 import Connection

from efrit_budget.budget.calibration import counts_of
from efrit_budget.budget.prices import CACHE_SECONDS, dollars
from efrit_budget.conversation import turns
from efrit_budget.conversation.end import usage_blocks
from efrit_budget.errors import JsonObject

CACHED = ("cache_read_input_tokens", "cache_creation_input_tokens")
LEAST_LOSS, LEAST_SHARE = 1_000, 0.1
"""The least tokens, and the least share of the cached ones, whose loss is reported."""


@dataclass(frozen=True)
class Attempt:
    """An attempt to get a reply, with the token counts that the API reported for it."""

    model: str
    provider: str
    counts: Mapping[str, int]
    is_reported: bool
    """Whether the API reported a prompt, as it does for each reply that was not broken off."""

    @property
    def dollars(self) -> float | None:
        """The price, or None if it is unknown."""
        return dollars(self.model, self.counts, self.provider) if self.is_reported else None


def session_usage(connection: Connection, session_id: str, *, price: bool) -> JsonObject:
    """Return `usage`: the token counts that the API reported for all ended turns, added up.

    Return the number of replies without such counts as `unreported`, if there are any. With
    `price`, return the price of all as `dollars`, None if the counts or the price of any are
    unknown.
    """
    attempts = _attempts(connection, session_id)
    whole: Counter[str] = Counter()
    for attempt in attempts:
        whole.update(attempt.counts)
    unreported = sum(not attempt.is_reported for attempt in attempts)
    found: JsonObject = {"usage": dict(whole)}
    if unreported:
        found["unreported"] = unreported
    if price:
        found["dollars"] = _total_dollars(attempts)
    return found


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
    if (turn["model"], turn["provider"]) != (before["model"], before["provider"]):
        reason = "model"
    elif turn["epoch"] != before["epoch"]:
        reason = "rewrite"
    elif idle > CACHE_SECONDS:
        reason = "expired"
    anew = min(lost, _prompt(counts) - counts.get("cache_read_input_tokens", 0))
    kinds = [{name: anew} for name in ("cache_creation_input_tokens", "cache_read_input_tokens")]
    written, read = (dollars(turn["model"], kind, turn["provider"]) for kind in kinds)
    extra = None if written is None or read is None else round(written - read, 6)
    return {"tokens": anew, "dollars": extra, "reason": reason, "idle": round(idle)}


def _prompt(counts: Mapping[str, int]) -> int:
    return sum(counts.get(name, 0) for name in ("input_tokens", *CACHED))


def _total_dollars(attempts: Iterable[Attempt]) -> float | None:
    prices = [attempt.dollars for attempt in attempts]
    known = [price for price in prices if price is not None]
    return round(sum(known), 6) if len(known) == len(prices) else None


def _attempts(connection: Connection, session_id: str) -> list[Attempt]:
    """Return the attempts of all ended turns; one that was broken off may lack counts."""
    found = []
    for row in turns.list_usage(connection, session_id):
        for index, usage in enumerate(usage_blocks(json.loads(row["usage"]))):
            counts = counts_of(usage)
            is_broken = bool(index or row["aborted"])
            is_reported = is_broken or _prompt(counts) > 0
            found.append(Attempt(row["model"], row["provider"], counts, is_reported))
    return found
