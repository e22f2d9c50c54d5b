"""How a result shrinks to what the window keeps of it."""

from __future__ import annotations

import logging
from collections.abc import Callable

from efrit_budget.characters import one_line_each
from efrit_budget.results.marks import own
from efrit_budget.results.sound import sound_text
from efrit_budget.results.tokens import handle

log = logging.getLogger(__name__)

MOST = 500
"""Characters a compressor may give."""
HEAD, TAIL = 320, 120


def summary(compressor: Callable[[], str], original: str, tool: str) -> str:
    """Return what a tool's compressor keeps of its result.

    A compressor that fails is logged, and head and tail are kept instead.
    """
    try:
        return one_line_each(sound_text(compressor()[:MOST]))
    except Exception:  # one tool's compressor never costs a result
        log.exception("the compressor of %s failed", tool)
        return head_and_tail(original)


def compressed(number: int, tokens: int, kept: str) -> str:
    """Return the line that stands for a result, with the handle that brings it back."""
    name = handle(number)
    note = own(f"[{name}: {tokens:,} tokens, shrunk; recall_result {name} brings it back]")
    return f"{note} {kept.strip()}".rstrip()


def head_and_tail(text: str) -> str:
    """The beginning and the end of a text, and how much stands between them."""
    if len(text) <= MOST:
        return text
    left_out = f" … {len(text) - HEAD - TAIL:,} characters … "
    return text[:HEAD].rstrip() + left_out + text[-TAIL:].lstrip()
