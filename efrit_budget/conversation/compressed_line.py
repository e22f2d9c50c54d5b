"""The line that replaces a result in the window."""

from sqlite3 import Row

from efrit_budget.results.footer import FOOTER_SIGN
from efrit_budget.results.marks import MARK, own
from efrit_budget.results.tokens import handle


def compressed_line(number: int, tokens: int, summary: str) -> str:
    """Return the line that replaces a compressed result: its handle, tokens and summary."""
    return f"{_line_start(number, tokens)} {summary.strip()}".rstrip()


def _line_start(number: int, tokens: int) -> str:
    name = handle(number)
    return own(f"[{name}: {tokens:,} tokens, shrunk; recall_result {name} brings it back]")


def line_of_same(number: int, same_as: int) -> str:
    """Return the line that replaces a "Same as" line and names the result that has its text."""
    name = handle(number)
    same = "" if same_as == number else f"same as {handle(same_as)}; "
    return own(f"[{name}: {same}recall_result {name} brings it back]")


def summary_of(row: Row) -> str:
    """Return the summary in the compressed line of a call, empty for a "Same as" line.

    If the whole result is stored as this line, being shorter, return its text without footer.
    """
    if row["same_as"] is not None:
        return ""
    text = row["compressed"] or ""
    if row["number"] is not None:
        text = text.removeprefix(_line_start(row["number"], row["tokens"]))
    text = text.removeprefix(f"{MARK} ")
    return " ".join(text.rpartition(FOOTER_SIGN)[0].split() or text.split())
