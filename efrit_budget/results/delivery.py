"""Deliver a result: a page of it that fits, with notes and a footer below."""

from dataclasses import dataclass, replace

from efrit_budget.budget.estimate import SAMPLE
from efrit_budget.errors import JsonObject
from efrit_budget.results.body import Body
from efrit_budget.results.footer import Terms, continues, showing, with_footer
from efrit_budget.results.marks import own
from efrit_budget.results.pages import Page, furthest, page, rest
from efrit_budget.results.tokens import Place, continuation_token, handle

TAIL_RESERVE = 12
"""The least tokens by which the room for a page shrinks after an attempt that did not fit."""
ATTEMPTS = 10
MARGIN_PERCENT = 6
WORTH_TRYING = 40
"""Characters per token of the allowance above which a text is not tried whole; it hardly fits."""
MAY_FIT = 130
"""The percentage of the allowance above which, by the rough cost, a text is not counted whole."""


def filled(allowance: int) -> int:
    """Return the part of an allowance to fill; estimates can be a few percent low."""
    return allowance - allowance * MARGIN_PERCENT // 100


@dataclass(frozen=True)
class Delivery:
    """The text of one page for the model, with its tokens, offsets and facts for programs."""

    text: str
    tokens: int
    start: int
    end: int
    page: JsonObject
    """The facts on the page for programs: its counts, and how to continue."""


def deliver(body: Body, number: int, start: int, terms: Terms, notes: tuple[str, ...]) -> Delivery:
    """Return the page from `start` with its notes and footer, within the allowance.

    The rough cost finds where to cut; then the page is counted whole. If not even a short page
    fits, return one line with the handle.
    """
    price, rough = terms.price or terms.cost, terms.rough or terms.price or terms.cost
    usable, room = filled(terms.allowance), None
    candidate = None
    if furthest(body, start) - start <= terms.allowance * WORTH_TRYING:
        candidate = rest(body, start, usable, rough)
        most = terms.allowance * MAY_FIT // 100
        if len(candidate.text) > SAMPLE and rough(candidate.text) > most:
            candidate = None
    for attempt in range(ATTEMPTS):
        if candidate is None:
            if room is None:
                end = Page(0, max(0, len(body.text) - 1), "")
                room = usable - price(_tail(body, number, end, terms, notes))
            if room <= 0 or start >= len(body.text):
                break
            candidate = page(body, start, room, rough)
        spent = price(candidate.text)
        if spent <= usable:
            delivery = _make_delivery(body, number, candidate, terms, notes)
            if delivery.tokens <= usable and price(delivery.text) <= terms.allowance:
                return delivery
        if room is not None:
            over = room * usable // max(spent, usable)
            room = min(over, room - max(TAIL_RESERVE, room * attempt // ATTEMPTS))
        candidate = None
    return _one_line(body, number, start, terms)


def _make_delivery(
    body: Body, number: int, cut: Page, terms: Terms, notes: tuple[str, ...]
) -> Delivery:
    """Return a page with its notes and footer, and the facts on it for programs."""
    tail = _tail(body, number, cut, terms, notes)
    line_end = "\n" if cut.text and tail and not cut.text.endswith("\n") else ""
    text, tokens = with_footer(f"{cut.text}{line_end}{tail}", terms)
    returned = body.count(cut.start, cut.end)
    facts: JsonObject = {"total": body.whole_count, "returned": returned}
    if cut.end < len(body.text) or body.more is not None:
        token = continuation_token(terms.session_id, Place(number, cut.end))
        facts["continuation_token"] = token
    if cut.end < len(body.text):
        facts["budget_note"] = _budget_note(body, returned, terms)
    return Delivery(text, tokens, cut.start, cut.end, facts)


def _tail(body: Body, number: int, cut: Page, terms: Terms, notes: tuple[str, ...]) -> str:
    """Return the lines between page and footer: notes, then what is shown and how to continue."""
    lines, total = list(notes), body.total
    if cut.end < len(body.text) or body.more is not None:
        token = continuation_token(terms.session_id, Place(number, cut.end))
        position = body.position
        if cut.end < len(body.text):
            pressed = " Little budget is left." if terms.pressed else ""
            position = f"{showing(_shown(body, cut), body.whole_count, body.noun)}.{pressed}"
        lines.append(continues(position, token))
    elif terms.budget_line is None and total is not None:
        stored = body.count(0, len(body.text))
        if stored < total and body.hint:
            lines.append(showing(_shown(body, cut), total, body.hint))
        elif stored < total:
            lines.append(f"Only the first {stored:,} of {total:,} {body.noun} were stored.")
    return "\n".join(own(*line.split("\n", 1)) for line in lines)


def _shown(body: Body, cut: Page) -> str:
    """Return how many items the page shows in words to put before the total, such as "3 of"."""
    returned = body.count(cut.start, cut.end)
    if returned or not body.text:
        return f"{returned:,} of"
    return "none yet of" if body.items and cut.end <= body.items[0] else "a part of one of"


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
