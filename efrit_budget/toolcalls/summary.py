"""Summarize a result for its compressed line."""

import logging

from efrit_budget.characters import one_line_each, sound_text
from efrit_budget.conversation.tool_call import ToolCall
from efrit_budget.results.marks import quote
from efrit_budget.results.names import most_frequent
from efrit_budget.tools.base import Arguments, Outcome, Status, Tool

log = logging.getLogger(__name__)

MOST = 500
"""Characters of the longest summary."""
HEAD, TAIL = 320, 120
BEGINNING = 60
"""The characters that a summary shows of a text whose names it lists."""
NAMES = " Names: "
LEAST_NAMES = 20
"""The least characters that are worth filling with names."""


def summarize(tool: Tool, call: ToolCall, arguments: Arguments | None, outcome: Outcome) -> str:
    """Return the tool's summary of a result; if call or summary failed, the text's two ends."""
    if arguments is None or outcome.status is not Status.SUCCESS:
        return one_line_each(head_and_tail(quote(outcome.text) or outcome.whole.text))
    if outcome.stored is not None:
        return one_line_each(f"A page of {tool.name} {call.canonical_arguments}"[:MOST])
    try:
        summary = quote(tool.compress(arguments, outcome))[:MOST]
        return one_line_each(with_names(summary, outcome.whole.text))
    except Exception:  # a result is kept even if its tool cannot summarize it
        log.exception("the compressor of %s failed", tool.name)
        return summary_of_text(sound_text(outcome.whole.text))


def summarize_recorded(given: str | None, outcome: Outcome) -> str:
    """Return the client's summary with names, or what stands in for it if it gave none."""
    text = outcome.whole.text
    if given:
        return one_line_each(with_names(quote(given), text))
    is_success = outcome.status is Status.SUCCESS
    return one_line_each(summary_of_text(text) if is_success else head_and_tail(text))


def summary_of_text(text: str) -> str:
    """Return a text of at most `MOST` characters whole, else its beginning and its names."""
    if len(text) <= MOST:
        return text
    return with_names(f"{text[:BEGINNING].rstrip()} … ({len(text):,} characters)", text)


def head_and_tail(text: str) -> str:
    """Return a text of at most `MOST` characters whole, else only its beginning and its end."""
    if len(text) <= MOST:
        return text
    left_out = f" … {len(text) - HEAD - TAIL:,} characters … "
    return text[:HEAD].rstrip() + left_out + text[-TAIL:].lstrip()


def with_names(summary: str, text: str) -> str:
    """Return a summary, filled up to `MOST` characters with the most frequent names of the text."""
    room = MOST - len(summary) - len(NAMES)
    if room < LEAST_NAMES:
        return summary
    found = most_frequent(text, room, without=summary)
    return f"{summary}{NAMES}{found}" if found else summary
