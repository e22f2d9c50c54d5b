"""Deliver a result: a page, a navigation line and the footer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from efrit_budget.budget.figures import shortened
from efrit_budget.errors import JsonObject
from efrit_budget.results.body import Body
from efrit_budget.results.marks import own
from efrit_budget.results.pages import Cost, Page, furthest, page, rest
from efrit_budget.results.tokens import Place, continuation_token, handle

FOOTER = "📏 ~"
TAIL_RESERVE = 12
"""Tokens kept back for what a figure in the tail may grow by."""
ATTEMPTS = 10
MARGIN_PERCENT = 6
WORTH_TRYING = 40
"""Characters for a token, above which a whole text is not tried: hardly any is so cheap."""
MAY_FIT = 130
"""The percentage of the allowance above which, by the rough cost, a text is not counted whole."""


def filled(allowance: int) -> int:
    """Return the part of an allowance to fill; estimates can be a few percent low."""
    return allowance - allowance * MARGIN_PERCENT // 100


@dataclass(frozen=True)
class Terms:
    """Constraints for delivering a result."""

    session_id: str
    allowance: int
    cost: Cost
    remaining: int | None
    pressed: bool = False
    """Whether the allowance is only the floor that every result is granted."""
    budget_line: Callable[[int], str] | None = None
    """The line before the footer that tells the same figure, where the tool has cut its answer."""
    price: Cost | None = None
    """What a text counts for in a page, where that may be more than its cost."""
    rough: Cost | None = None
    """The same by samples, for looking where to cut."""

    @property
    def filled(self) -> int:
        """The part of the allowance that a page may fill."""
        return filled(self.allowance)


@dataclass(frozen=True)
class Delivery:
    """The text for the model and its facts for programs."""

    text: str
    tokens: int
    start: int
    end: int
    page: JsonObject
    """What the page adds to the data that the body holds of it."""


def deliver(body: Body, number: int, start: int, terms: Terms, notes: tuple[str, ...]) -> Delivery:
    """Return the page from `start` with its tail, within the allowance.

    The rough cost finds where to cut; what is delivered is counted whole. Where not even a short
    page fits, the result is one line with its handle.
    """
    price, rough = terms.price or terms.cost, terms.rough or terms.price or terms.cost
    candidate = _all_that_is_left(body, start, terms, rough)
    room = terms.filled - price(_tail(body, number, _end_page(body), terms, notes))
    for attempt in range(ATTEMPTS):
        if candidate is None and room > 0 and start < len(body.text):
            candidate = page(body, start, room, rough)
        if candidate is None:
            break
        spent = price(candidate.text)
        if spent <= terms.filled:
            delivery = _make_delivery(body, number, candidate, terms, notes)
            if delivery.tokens <= terms.filled and price(delivery.text) <= terms.allowance:
                return delivery
        if attempt or candidate.end < furthest(body, start):
            over = room * terms.filled // max(spent, terms.filled)
            room = min(over, room - max(TAIL_RESERVE, room * attempt // ATTEMPTS))
        candidate = None
    return _one_line(body, number, start, terms)


def _all_that_is_left(body: Body, start: int, terms: Terms, rough: Cost) -> Page | None:
    """The page with all that is left, where it may fit."""
    if furthest(body, start) - start > terms.allowance * WORTH_TRYING:
        return None
    found = rest(body, start, terms.filled, rough)
    return found if rough(found.text) <= terms.allowance * MAY_FIT // 100 else None


def _make_delivery(
    body: Body, number: int, cut: Page, terms: Terms, notes: tuple[str, ...]
) -> Delivery:
    tail = _tail(body, number, cut, terms, notes)
    text, tokens = with_footer(_join_tail(cut.text, tail), terms)
    return Delivery(text, tokens, cut.start, cut.end, _page_facts(body, number, cut, terms))


def with_footer(text: str, terms: Terms) -> tuple[str, int]:
    """Return the text with its footer, and the tokens of both.

    Now and then no figure agrees with itself; then an empty line before the footer helps.
    """
    while (tokens := _self_consistent_count(text, terms)) is None:
        text += "\n"
    return _with_figure(text, tokens, terms), tokens


def _self_consistent_count(text: str, terms: Terms) -> int | None:
    """Return the token count that is correct when the footer states it, or None."""
    tried: list[int] = []
    tokens = terms.cost(_with_figure(text, terms.allowance, terms))
    while tokens not in tried:
        tried.append(tokens)
        counted = terms.cost(_with_figure(text, tokens, terms))
        if counted == tokens:
            return tokens
        tokens = counted
    for candidate in range(min(tried), max(tried) + 1):
        if terms.cost(_with_figure(text, candidate, terms)) == candidate:
            return candidate
    return None


def _with_figure(text: str, tokens: int, terms: Terms) -> str:
    remaining = (
        "" if terms.remaining is None else f" · {_remaining_text(terms.remaining - tokens)} left"
    )
    line = "" if terms.budget_line is None else f"{terms.budget_line(tokens)}\n"
    return f"{text}{_newline(text)}{line}{FOOTER}{tokens:,} tokens{remaining}"


def _remaining_text(tokens: int) -> str:
    return shortened(max(0, tokens))


def _newline(text: str) -> str:
    return "" if not text or text.endswith("\n") else "\n"


def _join_tail(text: str, tail: str) -> str:
    return f"{text}{_newline(text)}{tail}" if tail else text


def _end_page(body: Body) -> Page:
    return Page(0, max(0, len(body.text) - 1), "")


def _tail(body: Body, number: int, cut: Page, terms: Terms, notes: tuple[str, ...]) -> str:
    """Return the lines between the page and the footer."""
    lines = list(notes)
    if cut.end < len(body.text):
        token = continuation_token(terms.session_id, Place(number, cut.end))
        pressed = " Little budget is left." if terms.pressed else ""
        lines.append(
            f"Showing {_shown_count(body, cut)} {body.whole_count:,} {body.noun}.{pressed}"
            f" continuation_token {token} continues."
        )
    elif body.more is not None:
        token = continuation_token(terms.session_id, Place(number, cut.end))
        lines.append(f"{body.position} continuation_token {token} continues.")
    elif terms.budget_line is None and body.total is not None:
        lines += _unstored_line(body, cut, body.total)
    return "\n".join(map(_own_note, lines))


def _own_note(note: str) -> str:
    """Return a note marked as ours, with quoted text below it."""
    line, _, text = note.partition("\n")
    return own(line, text)


def _unstored_line(body: Body, cut: Page, total: int) -> Iterator[str]:
    """Yield the line on items that were not stored."""
    stored = body.count(0, len(body.text))
    if stored < total:
        line = f"Only the first {stored:,} of {total:,} {body.noun} were stored."
        yield f"Showing {_shown_count(body, cut)} {total:,} {body.hint}" if body.hint else line


def _shown_count(body: Body, cut: Page) -> str:
    """Return how many items the page shows, as the navigation line words it."""
    returned = body.count(cut.start, cut.end)
    if returned or not body.text:
        return f"{returned:,} of"
    return "none yet of" if body.items and cut.end <= body.items[0] else "a part of one of"


def _page_facts(body: Body, number: int, cut: Page, terms: Terms) -> JsonObject:
    returned = body.count(cut.start, cut.end)
    facts: JsonObject = {"total": body.whole_count, "returned": returned}
    if cut.end < len(body.text) or body.more is not None:
        token = continuation_token(terms.session_id, Place(number, cut.end))
        facts["continuation_token"] = token
    if cut.end < len(body.text):
        facts["budget_note"] = _budget_note(body, returned, terms)
    return facts


def _budget_note(body: Body, returned: int, terms: Terms) -> str:
    note = f"{returned:,} of {body.whole_count:,}. Pass continuation_token to continue"
    if terms.remaining is None or not returned:
        return note + "."
    more = max(0, terms.remaining - terms.allowance) * returned // max(1, terms.allowance)
    return f"{note}; the budget allows ~{more:,} more."


def _one_line(body: Body, number: int, start: int, terms: Terms) -> Delivery:
    name, terms = handle(number), replace(terms, budget_line=None)
    why = "no budget is left for it" if terms.pressed else "the allowance is too small for it"
    long = (
        f"{name}: stored, not shown, {body.whole_count:,} {body.noun}: {why}."
        f" recall_result {name} brings it."
    )
    short = own(f"{name} stored, not shown")
    text, tokens = with_footer(own(long), terms)
    if tokens > terms.allowance:
        text, tokens = with_footer(short, terms)
    if tokens > terms.allowance:
        text, tokens = with_footer(short, replace(terms, remaining=None))
    token = continuation_token(terms.session_id, Place(number, start))
    facts = {"total": body.whole_count, "returned": 0, "continuation_token": token}
    return Delivery(text, tokens, start, start, facts)
