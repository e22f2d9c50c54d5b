"""The line that replaces a result in the window: written and parsed here alone."""

from __future__ import annotations

from efrit_budget.results.footer import FOOTER_SIGN
from efrit_budget.results.marks import MARK, own
from efrit_budget.results.tokens import handle


def compressed_line(number: int, tokens: int, summary: str) -> str:
    """Return the line of a result, with the handle that brings it back."""
    name = handle(number)
    note = own(f"[{name}: {tokens:,} tokens, shrunk; recall_result {name} brings it back]")
    return f"{note} {summary.strip()}".rstrip()


def line_of_same(number: int, same_as: int) -> str:
    """Return the line of a result that was shown only as the name of an equal one."""
    name = handle(number)
    same = "" if same_as == number else f"same as {handle(same_as)}; "
    return own(f"[{name}: {same}recall_result {name} brings it back]")


def summary_of(line: str | None, number: int | None) -> str:
    """Return the summary in a line, or a text that took its place without its footer."""
    text = (line or "").removeprefix(f"{MARK} ")
    if number is not None and text.startswith(f"[{handle(number)}: "):
        text = text.partition("] ")[2]
    return " ".join(text.rpartition(FOOTER_SIGN)[0].split() or text.split())
