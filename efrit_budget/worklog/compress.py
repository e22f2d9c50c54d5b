"""How a result shrinks to what the window keeps of it."""

from __future__ import annotations

import logging
from collections.abc import Callable

from efrit_budget.results.sound import sound_text
from efrit_budget.results.tokens import handle

log = logging.getLogger(__name__)

MOST = 500
"""Characters a compressor may give."""
HEAD, TAIL = 320, 120


def compressed(number: int, tokens: int, compressor: Callable[[], str], original: str) -> str:
    """The line that stands for a result, with the handle that brings it back.

    A compressor that fails is logged, and head and tail are kept instead.
    """
    try:
        kept = sound_text(compressor()[:MOST])
    except Exception:  # one tool's compressor never costs a result
        log.exception("the compressor of r%d failed", number)
        kept = head_and_tail(original)
    name = handle(number)
    note = f"[{name}: {tokens:,} tokens, shrunk; recall_result {name} brings it back]"
    return f"{note} {kept.strip()}".rstrip()


def head_and_tail(text: str) -> str:
    """The beginning and the end of a text, and how much stands between them."""
    if len(text) <= MOST:
        return text
    left_out = f" … {len(text) - HEAD - TAIL:,} characters … "
    return text[:HEAD].rstrip() + left_out + text[-TAIL:].lstrip()
