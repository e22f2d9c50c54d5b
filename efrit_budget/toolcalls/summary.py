"""Summarize a result for its compressed line."""

import logging

from efrit_budget.characters import one_line_each, sound_text
from efrit_budget.conversation.tool_call import ToolCall
from efrit_budget.results.marks import quote
from efrit_budget.tools.base import Arguments, Outcome, Status, Tool

log = logging.getLogger(__name__)

MOST = 500
"""Characters of the longest summary."""
HEAD, TAIL = 320, 120


def summarize(tool: Tool, call: ToolCall, arguments: Arguments | None, outcome: Outcome) -> str:
    """Return the tool's summary of a result; if call or summary failed, the text's two ends."""
    if arguments is None or outcome.status is not Status.SUCCESS:
        return one_line_each(head_and_tail(quote(outcome.text) or outcome.whole.text))
    if outcome.stored is not None:
        return one_line_each(f"A page of {tool.name} {call.canonical_arguments}"[:MOST])
    try:
        return one_line_each(quote(tool.compress(arguments, outcome))[:MOST])
    except Exception:  # a result is kept even if its tool cannot summarize it
        log.exception("the compressor of %s failed", tool.name)
        return head_and_tail(sound_text(outcome.whole.text))


def summarize_recorded(given: str | None, outcome: Outcome) -> str:
    """Return the client's summary, or the two ends of the text if it gave none."""
    return one_line_each(quote(given) if given else head_and_tail(outcome.whole.text))


def head_and_tail(text: str) -> str:
    """Return a text of at most `MOST` characters whole, else only its beginning and its end."""
    if len(text) <= MOST:
        return text
    left_out = f" … {len(text) - HEAD - TAIL:,} characters … "
    return text[:HEAD].rstrip() + left_out + text[-TAIL:].lstrip()
