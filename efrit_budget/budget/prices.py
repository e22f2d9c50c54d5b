"""What replies cost in dollars."""

from __future__ import annotations

from collections.abc import Mapping

USAGE_NAMES = {
    "input_tokens": "input_tokens",
    "cache_creation_input_tokens": "cache_write_tokens",
    "cache_read_input_tokens": "cache_read_tokens",
    "output_tokens": "output_tokens",
}


def dollars(model: str, usage: Mapping[str, int]) -> float | None:
    """The price of what an API's `usage` block counts; None where nobody knows the model's."""
    from genai_prices import Usage, calc_price  # noqa: PLC0415  it takes 250 ms to import

    counts = {ours: usage.get(theirs, 0) for theirs, ours in USAGE_NAMES.items()}
    # The API counts cached tokens apart; the price list wants them within the input.
    counts["input_tokens"] += counts["cache_write_tokens"] + counts["cache_read_tokens"]
    try:
        price = calc_price(Usage(**counts), model_ref=model, provider_id="anthropic")
    except LookupError:
        return None
    return float(price.total_price)
