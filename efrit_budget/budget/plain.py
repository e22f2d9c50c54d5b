"""The plain token estimates of the seeds, with their exact results.

Memory tools and packs are specified by these. What enters the window is charged by
`efrit_budget.budget.estimate` instead, which looks at the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

Cost = Callable[[str], int]

MEMORY_OVERHEAD = 20
INDEX_OVERHEAD = 15


def utf8_bytes(text: str) -> int:
    """Return the length of a text in UTF-8, counting lone surrogates."""
    return len(text.encode("utf-8", "surrogatepass"))


def plain_tokens(text: str) -> int:
    """Return a quarter of the bytes, rounded down, at least 1 unless empty (seed 000)."""
    return max(1, utf8_bytes(text) // 4) if text else 0


def token_footer(tokens: int) -> str:
    """Return the line that states what a response costs (seed 000)."""
    return f"\n📏 ~{tokens:,} tokens"


def plain_tokens_ceil(text: str) -> int:
    """Return a quarter of the bytes, rounded up (seed 004)."""
    return (utf8_bytes(text) + 3) // 4


def memory_tokens(title: str, content: str, tags: Iterable[str] = ()) -> int:
    """Return what a whole observation costs, with kind, date and id (seed 004)."""
    parts = (title, content, ", ".join(tags))
    return sum(map(plain_tokens_ceil, parts)) + MEMORY_OVERHEAD


def index_tokens(title: str, tags: Iterable[str] = ()) -> int:
    """Return what an observation costs in a list of search results (seed 004)."""
    return plain_tokens_ceil(title) + plain_tokens_ceil(", ".join(tags)) + INDEX_OVERHEAD


def dearest(cost: Cost) -> Cost:
    """Return a cost function that takes the highest of several estimates.

    Plain English costs less than a quarter of its bytes, by which others estimate.
    """
    return lambda text: max(cost(text), plain_tokens_ceil(text))
