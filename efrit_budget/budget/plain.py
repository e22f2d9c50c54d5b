"""Estimate tokens from the number of bytes alone, by the formulas of docs/requirements.md.

The seeds there specify memory tools and packs with these formulas. Texts in the window are
counted by `efrit_budget.budget.estimate` instead.
"""

from collections.abc import Callable, Iterable

Cost = Callable[[str], int]

MEMORY_OVERHEAD = 20
INDEX_OVERHEAD = 15


def utf8_bytes(text: str) -> int:
    """Return the number of bytes of a text in UTF-8, in which a lone surrogate counts three."""
    return len(text.encode("utf-8", "surrogatepass"))


def plain_tokens(text: str) -> int:
    """Return a quarter of a text's bytes, rounded down, at least 1 unless empty (seed 000)."""
    return max(1, utf8_bytes(text) // 4) if text else 0


def token_footer(tokens: int) -> str:
    """Return the line that states the tokens of a response (seed 000)."""
    return f"\n📏 ~{tokens:,} tokens"


def plain_tokens_ceil(text: str) -> int:
    """Return a quarter of a text's bytes, rounded up (seed 004)."""
    return (utf8_bytes(text) + 3) // 4


def memory_tokens(title: str, content: str, tags: Iterable[str] = ()) -> int:
    """Return the tokens of a whole observation, with kind, date and id (seed 004)."""
    parts = (title, content, ", ".join(tags))
    return sum(map(plain_tokens_ceil, parts)) + MEMORY_OVERHEAD


def index_tokens(title: str, tags: Iterable[str] = ()) -> int:
    """Return the tokens of an observation in a list of search results (seed 004)."""
    return plain_tokens_ceil(title) + plain_tokens_ceil(", ".join(tags)) + INDEX_OVERHEAD


def dearest(cost: Cost) -> Cost:
    """Return a function that gives the higher of a text's cost and a quarter of its bytes.

    Other programs count a quarter of the bytes, which for plain English is more than its cost.
    """
    return lambda text: max(cost(text), plain_tokens_ceil(text))
