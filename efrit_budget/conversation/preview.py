"""Preview the next request without storing anything."""

import json
from collections.abc import Mapping
from sqlite3 import Connection

from efrit_budget.budget.calibration import counts_of
from efrit_budget.budget.endpoint import Endpoint
from efrit_budget.budget.models import Model
from efrit_budget.budget.prices import dollars
from efrit_budget.conversation import calls, turns
from efrit_budget.conversation.begin import BegunTurn
from efrit_budget.conversation.bounds import Bounds
from efrit_budget.conversation.pieces import PieceState
from efrit_budget.conversation.prices import CACHED
from efrit_budget.conversation.window_state import load_state
from efrit_budget.conversation.windows import Window
from efrit_budget.errors import JsonObject
from efrit_budget.results.tokens import handle


def full_results(connection: Connection, session_id: str) -> dict[int, JsonObject]:
    """Return handle, tool and tokens of each result that is in the window in full, by number."""
    return {
        row["number"]: {
            "handle": handle(row["number"]),
            "tool": row["tool"],
            "tokens": row["tokens"],
        }
        for row in calls.list_results(connection, session_id)
        if row["state"] == PieceState.FULL
    }


def cached_tokens(connection: Connection, window: Window, model: Model) -> int | None:
    """Return the tokens of the next prompt that are cached since the latest turn.

    Return 0 after a change of epoch or model, and None if the endpoint does not cache: the latest
    turn had a prompt that was large enough, and no cached tokens.
    """
    row = turns.find_latest_usage(connection, window.session_id)
    counts = counts_of(json.loads(row["usage"])) if row is not None else {}
    cached_count = sum(counts.get(name, 0) for name in CACHED)
    if row is None or row["model"] != model.name:
        return 0
    if not cached_count and counts.get("input_tokens", 0) >= model.least_cacheable:
        return None
    return cached_count if row["epoch"] == window.epoch else 0


def next_prompt(
    connection: Connection, window: Window, bounds: Bounds, endpoint: Endpoint, *, caching: bool
) -> JsonObject:
    """Return tokens and price of the window as the next prompt, for a model at an endpoint.

    For another than that of the latest request the window would be rewritten.
    """
    state, name = load_state(connection, window, bounds), bounds.model.name
    is_same = (name, endpoint.as_text()) == (window.model, window.endpoint)
    if is_same:
        prompt = state.used
        cached = cached_tokens(connection, window, bounds.model) if caching else None
    else:
        prompt, cached = min(state.used, state.plan(connection).total), 0 if caching else None
    read, new = min(cached or 0, prompt), _kind_of_new(cached, prompt, bounds)
    counts = {new: prompt - read, "cache_read_input_tokens": read}
    price = dollars(name, counts, endpoint.provider)
    return {
        "prompt": {
            "tokens": prompt,
            "cached": read,
            "rewritten": bool(window.epoch) and not is_same,
            "dollars": price,
        }
    }


def _kind_of_new(cached: int | None, prompt: int, bounds: Bounds) -> str:
    """Return what the API calls the tokens that are not cached yet."""
    is_plain = cached is None or prompt < bounds.model.least_cacheable
    return "input_tokens" if is_plain else "cache_creation_input_tokens"


def preview_reply(
    begun: BegunTurn, shrinking: list[JsonObject], cached: int | None, provider: str
) -> JsonObject:
    """Return the reply of `turn/preview`.

    `cached` are the tokens of the latest prompt that are cached, None if caching is off; each of
    `shrinking` is a result that the turn would compress or evict.
    """

    def price(counts: Mapping[str, int]) -> float | None:
        return dollars(bounds.model.name, counts, provider)

    budget, bounds = begun.state.snapshot(), begun.state.bounds
    prompt = sum(tier["used"] for tier in budget["tiers"].values())
    read = min(cached or 0, 0 if begun.rewritten else prompt)
    new = _kind_of_new(cached, prompt, bounds)
    return {
        "prompt": prompt,
        "cached": read,
        "epoch": begun.state.window.epoch,
        "rewritten": begun.rewritten,
        "shrinking": shrinking,
        "notes": list(begun.notes),
        "dollars": {
            "prompt": price({new: prompt - read, "cache_read_input_tokens": read}),
            "prompt_expired": price({new: prompt}),
            "longest_reply": price({"output_tokens": bounds.reply_limit}),
        },
        "budget": budget,
    }
