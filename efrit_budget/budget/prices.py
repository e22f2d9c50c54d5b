"""Compute what replies cost in dollars."""

from collections.abc import Mapping
from functools import lru_cache

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
SOME = 1_000
"""The tokens of a prompt that is short for any model."""


def dollars(model: str, usage: Mapping[str, int]) -> float | None:
    """Return the dollars for the tokens that a `usage` block counts, or None if unknown."""
    return _price(model, tuple(usage.get(theirs, 0) for theirs in USAGE_NAMES))


def million_prices(model: str) -> dict[str, float] | None:
    """Return the dollars for a million tokens of each kind, or None if unknown.

    They are those of short prompts, where a model has other prices for long ones.
    """
    prices: dict[str, float] = {}
    for theirs, name in MILLION_NAMES.items():
        price = dollars(model, {theirs: SOME})
        if price is None:
            return None
        prices[name] = round(price * (1_000_000 // SOME), 6)
    return prices


@lru_cache(maxsize=10_000)
def _price(model: str, counted: tuple[int, ...]) -> float | None:
    """Return the dollars for counts in the order of `USAGE_NAMES`, from a cache if possible."""
    from genai_prices import Usage, calc_price  # noqa: PLC0415  it takes 250 ms to import

    counts = dict(zip(USAGE_NAMES.values(), counted, strict=True))
    # The API counts cached tokens apart; the price list wants them within the input.
    counts["input_tokens"] += counts["cache_write_tokens"] + counts["cache_read_tokens"]
    try:
        price = calc_price(Usage(**counts), model_ref=model, provider_id="anthropic")
    except LookupError:
        return None
    return float(price.total_price)
