"""The last lines of a delivered text: how much it shows, how to go on, and what it costs."""

from collections.abc import Callable
from dataclasses import dataclass

from efrit_budget.results.marks import own
from efrit_budget.results.pages import Cost

FOOTER_SIGN = "📏 ~"
LONGEST_FOOTER = f"\n{FOOTER_SIGN}1,000,000 tokens · 9.4k left"
"""A footer a little longer than those of real sessions, to reserve room for one."""


@dataclass(frozen=True)
class Terms:
    """Constraints for delivering a result; `remaining` are the tokens left in the window."""

    session_id: str
    allowance: int
    cost: Cost
    remaining: int | None
    pressed: bool = False
    """Whether the allowance is only the floor that every result is given."""
    budget_line: Callable[[int], str] | None = None
    """Makes the line before the footer from the footer's tokens, if the tool has cut its answer."""
    price: Cost | None = None
    """The cost function by which a page must fit, if it may give more than `cost`."""
    rough: Cost | None = None
    """A fast cost function that samples long texts, to find where to cut."""


def showing(shown: str, total: int, noun: str) -> str:
    """Return how much of a result is shown: "Showing 3 of 10 lines"."""
    return f"Showing {shown} {total:,} {noun}"


def continues(position: str, token: str) -> str:
    """Return the line that says where a page ends and how to go on."""
    return f"{position} continuation_token {token} continues."


LONGEST_NAVIGATION = own(continues("Showing 10,000 of 100,000 lines.", "r10000:1000000-ffff"))
"""A line on how to continue, as long as a real one, to reserve room for one."""


def with_footer(text: str, terms: Terms) -> tuple[str, int]:
    """Return the text with its footer, and the tokens of both together."""
    line_end = "\n" if text and not text.endswith("\n") else ""

    def write(tokens: int, blank: str) -> str:
        line = "" if terms.budget_line is None else f"{terms.budget_line(tokens)}\n"
        whole = f"{text}{line_end}{blank}{line}{FOOTER_SIGN}{tokens:,} tokens"
        if terms.remaining is not None:
            left = max(0, terms.remaining - tokens)
            rounded = f"{left // 1000}k" if left >= 10_000 else f"{left // 100 / 10:.1f}k"
            whole += f" · {left if left < 1000 else rounded} left"
        return whole

    return state_own_cost(write, terms.cost, terms.allowance)


def state_own_cost(
    write: Callable[[int, str], str], cost: Cost, first: int, *, may_fill: bool = True
) -> tuple[str, int]:
    """Return a text that states its own tokens, and these tokens.

    `write` makes the text from the tokens to state and from blank lines to put into it. Each
    attempt states the count of the one before, the first one `first`; if the counts repeat, all
    between them are tried; and if none of them is right, blank lines are put in. Unless `may_fill`,
    state the highest count instead.
    """
    blank = ""
    while True:
        tried: list[int] = []
        tokens = first
        while tokens not in tried:
            tried.append(tokens)
            text = write(tokens, blank)
            counted = cost(text)
            if counted == tokens:
                return text, tokens
            tokens = counted
        tried = [*tried[1:], tokens]
        for tokens in range(min(tried), max(tried) + 1):
            text = write(tokens, blank)
            if cost(text) == tokens:
                return text, tokens
        if not may_fill:
            return write(max(tried), ""), max(tried)
        blank += "\n"
