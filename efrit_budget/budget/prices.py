"""Look up in the price list what replies cost, and what windows models have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from genai_prices.types import Provider

USAGE_NAMES = {
    "input_tokens": "input_tokens",
    "cache_creation_input_tokens": "cache_write_tokens",
    "cache_read_input_tokens": "cache_read_tokens",
    "output_tokens": "output_tokens",
}
"""Maps the API's names of token counts to those of `genai_prices`."""
MILLION_NAMES = {
    "input_tokens": "input",
    "cache_creation_input_tokens": "cache_write",
    "cache_read_input_tokens": "cache_read",
    "output_tokens": "output",
}
"""Maps the API's names of token counts to the names that `million_prices` uses."""
VENDOR = "anthropic"
"""The provider of an endpoint that the client does not describe."""
LEAST_WINDOW = 8_000
"""The least window of the models that are listed; smaller ones are for other work."""
CACHE_SECONDS = 300
"""The seconds after which the API forgets a prompt that was not sent again."""
SOME = 1_000
"""The tokens of a prompt that is short for any model."""


@dataclass(frozen=True)
class Rates:
    """The prices of tokens that a cache reads and writes, beside that of other input tokens."""

    read: float
    write: float


def cache_rates(model: str, provider: str = "") -> Rates | None:
    """Return the rates of a model, or None if its prices are unknown or it costs nothing."""
    prices = million_prices(model, provider)
    if not prices or not prices["input"]:
        return None
    read, write = (prices[kind] / prices["input"] for kind in ("cache_read", "cache_write"))
    return Rates(read, write)


def dollars(model: str, usage: Mapping[str, int], provider: str = "") -> float | None:
    """Return the dollars for the tokens that a `usage` block counts, or None if unknown."""
    return _price(model, provider, tuple(usage.get(theirs, 0) for theirs in USAGE_NAMES))


def million_prices(model: str, provider: str = "") -> dict[str, float] | None:
    """Return the dollars for a million tokens of each kind, or None if unknown.

    They are those of short prompts, where a model has other prices for long ones.
    """
    prices: dict[str, float] = {}
    for theirs, name in MILLION_NAMES.items():
        price = dollars(model, {theirs: SOME}, provider)
        if price is None:
            return None
        prices[name] = round(price * (1_000_000 // SOME), 6)
    return prices


@lru_cache(maxsize=10_000)
def _price(model: str, provider: str, counted: tuple[int, ...]) -> float | None:
    """Return the dollars for counts in the order of `USAGE_NAMES`, from a cache if possible."""
    from genai_prices import Usage, calc_price  # noqa: PLC0415  it takes 250 ms to import

    counts = dict(zip(USAGE_NAMES.values(), counted, strict=True))
    # The API counts cached tokens apart; the price list wants them within the input.
    counts["input_tokens"] += counts["cache_write_tokens"] + counts["cache_read_tokens"]
    try:
        price = calc_price(Usage(**counts), model_ref=model, provider_id=provider or VENDOR)
    except LookupError:
        return None
    return float(price.total_price)


def listed_models(provider: str) -> list[str]:
    """Return the names of a provider's models for conversations, as the price list has them."""
    return [
        model.id
        for listed in _providers()
        if listed.id == provider
        for model in listed.models
        if (model.context_window or 0) >= LEAST_WINDOW and not model.deprecated
    ]


@lru_cache(maxsize=1_000)
def listed_window(model: str, provider: str) -> int | None:
    """Return the window of a provider's model, or None if the price list does not have it."""
    for listed in _providers():
        if listed.id == provider:
            found = listed.find_model(model)
            return None if found is None else found.context_window
    return None


def _providers() -> Sequence[Provider]:
    from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415  as in `_price`

    return get_snapshot().providers
