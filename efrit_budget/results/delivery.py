"""What of a result is delivered: a page, one line of navigation, and the footer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from efrit_budget.budget.figures import shortened
from efrit_budget.errors import Json
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


def filled(allowance: int) -> int:
    """What of an allowance is filled: an estimate of a page is low by a few percent at times."""
    return allowance - allowance * MARGIN_PERCENT // 100


@dataclass(frozen=True)
class Terms:
    """Under which a result is delivered."""

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

    @property
    def filled(self) -> int:
        """What a page may take of the allowance."""
        return filled(self.allowance)


@dataclass(frozen=True)
class Delivery:
    """The text for the model, and the facts about it for programs."""

    text: str
    tokens: int
    start: int
    end: int
    page: dict[str, Json]
    """What the page adds to the data that the body holds of it."""


def deliver(body: Body, number: int, start: int, terms: Terms, notes: tuple[str, ...]) -> Delivery:
    """The page from `start` with its tail, all of it within the allowance.

    Where not even a short page fits, the result is one line with its handle.
    """
    price = terms.price or terms.cost
    for cut in _cuts(body, number, start, replace(terms, cost=price), notes):
        if price(cut.text) > terms.filled:
            continue
        delivery = _delivered(body, number, cut, terms, notes)
        if delivery.tokens <= terms.filled and price(delivery.text) <= terms.allowance:
            return delivery
    return _one_line(body, number, start, terms)


def _cuts(
    body: Body, number: int, start: int, terms: Terms, notes: tuple[str, ...]
) -> Iterator[Page]:
    """Pages to try: all that is left, then ever shorter ones."""
    if furthest(body, start) - start <= terms.allowance * WORTH_TRYING:
        yield rest(body, start, terms.filled, terms.cost)
    room = terms.filled - terms.cost(_tail(body, number, _end_page(body), terms, notes))
    for attempt in range(ATTEMPTS):
        if room <= 0 or start >= len(body.text):
            return
        yield page(body, start, room, terms.cost)
        room -= max(TAIL_RESERVE, room * attempt // ATTEMPTS)


def _delivered(
    body: Body, number: int, cut: Page, terms: Terms, notes: tuple[str, ...]
) -> Delivery:
    tail = _tail(body, number, cut, terms, notes)
    text, tokens = with_footer(_joined(cut.text, tail), terms)
    return Delivery(text, tokens, cut.start, cut.end, _page_facts(body, number, cut, terms))


def with_footer(text: str, terms: Terms) -> tuple[str, int]:
    """The text with its footer, and the tokens of both; the figure is part of what it counts.

    Now and then no figure agrees with itself; then an empty line before the footer helps.
    """
    while (tokens := _agreeing(text, terms)) is None:
        text += "\n"
    return _with_figure(text, tokens, terms), tokens


def _agreeing(text: str, terms: Terms) -> int | None:
    """The figure that is the cost of the text with that very figure in its footer."""
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
    left = "" if terms.remaining is None else f" · {_left(terms.remaining - tokens)} left"
    line = "" if terms.budget_line is None else f"{terms.budget_line(tokens)}\n"
    return f"{text}{_newline(text)}{line}{FOOTER}{tokens:,} tokens{left}"


def _left(tokens: int) -> str:
    return shortened(max(0, tokens))


def _newline(text: str) -> str:
    return "" if not text or text.endswith("\n") else "\n"


def _joined(text: str, tail: str) -> str:
    return f"{text}{_newline(text)}{tail}" if tail else text


def _end_page(body: Body) -> Page:
    return Page(0, max(0, len(body.text) - 1), "")


def _tail(body: Body, number: int, cut: Page, terms: Terms, notes: tuple[str, ...]) -> str:
    """What stands between the page and the footer: notes, and where the page ends."""
    lines = list(notes)
    if cut.end < len(body.text):
        token = continuation_token(terms.session_id, Place(number, cut.end))
        pressed = " Little budget is left." if terms.pressed else ""
        lines.append(
            f"Showing {_shown(body, cut)} {body.whole_count:,} {body.noun}.{pressed}"
            f" continuation_token {token} continues."
        )
    elif body.more is not None:
        token = continuation_token(terms.session_id, Place(number, cut.end))
        lines.append(f"{body.position} continuation_token {token} continues.")
    elif terms.budget_line is None and body.total is not None:
        lines += _unstored(body, cut, body.total)
    return "\n".join(map(_own, lines))


def _own(note: str) -> str:
    """A note as it stands in the tail; what follows its first line is found text."""
    line, _, text = note.partition("\n")
    return own(line, text)


def _unstored(body: Body, cut: Page, total: int) -> Iterator[str]:
    """The line on what none of the pages has."""
    stored = body.count(0, len(body.text))
    if stored < total:
        told = f"Only the first {stored:,} of {total:,} {body.noun} were stored."
        yield f"Showing {_shown(body, cut)} {total:,} {body.hint}" if body.hint else told


def _shown(body: Body, cut: Page) -> str:
    """How a page stands to the items: how many of them begin on it, or that none does."""
    returned = body.count(cut.start, cut.end)
    if returned or not body.text:
        return f"{returned:,} of"
    return "none yet of" if body.items and cut.end <= body.items[0] else "a part of one of"


def _page_facts(body: Body, number: int, cut: Page, terms: Terms) -> dict[str, Json]:
    returned = body.count(cut.start, cut.end)
    facts: dict[str, Json] = {"total": body.whole_count, "returned": returned}
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
    text, tokens = with_footer(own(long), terms)
    if tokens > terms.allowance:
        text, tokens = with_footer(own(f"{name} stored, not shown"), replace(terms, remaining=None))
    token = continuation_token(terms.session_id, Place(number, start))
    facts = {"total": body.whole_count, "returned": 0, "continuation_token": token}
    return Delivery(text, tokens, start, start, facts)
