"""Format token counts for people."""


def shortened(tokens: int) -> str:
    """Return a count rounded down to a short form: 57k, 9.4k, 800."""
    if tokens >= 10_000:
        return f"{tokens // 1000}k"
    return f"{tokens // 100 / 10:.1f}k" if tokens >= 1000 else str(tokens)
