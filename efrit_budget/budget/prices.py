"""What replies cost in dollars."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

USAGE_NAMES = {
    "input_tokens": "input_tokens",
    "cache_creation_input_tokens": "cache_write_tokens",
    "cache_read_input_tokens": "cache_read_tokens",
    "output_tokens": "output_tokens",
}


def dollars(model: str, usage: Mapping[str, int]) -> float | None:
    """The price of what an API's `usage` block counts; None where nobody knows the model's."""
    return _price(model, tuple(usage.get(theirs, 0) for theirs in USAGE_NAMES))


@lru_cache(maxsize=10_000)
def _price(model: str, counted: tuple[int, ...]) -> float | None:
    """The same, remembered: a session asks for all its turns after each of them."""
    from genai_prices import Usage, calc_price  # noqa: PLC0415  it takes 250 ms to import

    counts = dict(zip(USAGE_NAMES.values(), counted, strict=True))
    # The API counts cached tokens apart; the price list wants them within the input.
    counts["input_tokens"] += counts["cache_write_tokens"] + counts["cache_read_tokens"]
    try:
        price = calc_price(Usage(**counts), model_ref=model, provider_id="anthropic")
    except LookupError:
        return None
    return float(price.total_price)
