"""Answers that keep to `max_tokens` as a whole, and say how much of it all they show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from efrit_budget.budget.plain import dearest
from efrit_budget.memory.wording import budget_line, navigation_hint
from efrit_budget.results.body import Body
from efrit_budget.results.delivery import MARGIN_PERCENT
from efrit_budget.results.pages import Cost, page
from efrit_budget.results.sections import Section, whole, within
from efrit_budget.tools.base import Outcome, ToolContext

FOOTER = "\n📏 ~1,000,000 tokens · 9.4k left"
"""As long as a footer is in any session, and a little longer."""
DRIFT = 50
"""The share of a price by which that of a long text can change when its tail does."""
LEAST_ROOM = 30
"""Tokens of a page below which a text is not cut into pages beforehand."""
CONTINUES = "Showing 1 of 1,000 pages. continuation_token r1000:1000000-ffff continues.\n"


@dataclass(frozen=True)
class Found:
    """What an answer can show, and of how much that is a part."""

    lead: str
    """Lines that head it."""
    sections: Sequence[Section]
    noun: str
    total: int
    """How many there are, those left out by the limit included."""
    hint: str
    """What to do about those, behind the noun."""
    counted: str = ""
    """What is counted, where that takes more words than the noun."""

    def hint_at(self, shown: int, hint: str) -> str:
        """The line on how much of it is shown; empty where that is all."""
        return navigation_hint(shown, self.total, f"{self.counted or self.noun}. {hint}".rstrip())


def fitted(found: Found, max_tokens: int | None, context: ToolContext) -> Outcome:
    """The answer: whole, or what of it `max_tokens` allows; without it, to be paged."""
    price = dearest(context.cost)
    body = whole(found.lead, found.sections, found.noun)
    shown = len(body.items)
    hint = found.hint_at(shown, found.hint)
    if price(f"{body.text}{hint}{FOOTER}") <= context.allowance:
        return Outcome(body=body, notes=(hint,) if hint else ())
    if max_tokens is None:
        return Outcome(body=replace(body, total=found.total))
    return _cut(found, min(max_tokens, _granted(context)), context.allowance, price)


def _granted(context: ToolContext) -> int:
    """What the allowance was before its margin was taken off."""
    return context.allowance * 100 // (100 - MARGIN_PERCENT)


def _cut(found: Found, budget: int, allowance: int, price: Cost) -> Outcome:
    """What fits beside the line on the budget; at the least that line, or a shorter one."""
    line = partial(_line, budget=budget, found=found)
    tail = f"{line(budget, found.total)}{FOOTER}"
    room = allowance - allowance // DRIFT
    for lead in (found.lead, ""):
        answer = within(lead, found.sections, found.noun, room, price, tail)
        if answer is not None:
            return Outcome(body=answer.body, budget_line=partial(line, shown=answer.shown))
    if price(f"{line(budget, 0)}{FOOTER}") <= allowance:
        return Outcome(budget_line=partial(line, shown=0))
    return Outcome(found.hint_at(0, "Increase max_tokens."))


def _line(tokens: int, shown: int, budget: int, found: Found) -> str:
    return budget_line(tokens, budget, shown, found.total, found.noun)


def paged(text: str, max_tokens: int | None, context: ToolContext) -> Body:
    """A text of which each page keeps to `max_tokens`, however it is counted."""
    if max_tokens is None:
        return Body(text)
    price = dearest(context.cost)
    if price(f"{text}{FOOTER}") <= context.allowance:
        return Body(text)
    room = context.allowance - price(f"{CONTINUES}{FOOTER}")
    if room < LEAST_ROOM:
        return Body(text)
    body, starts = Body(text), [0]
    while (end := page(body, starts[-1], room, price).end) < len(text):
        starts.append(end)
    return Body(text, "pages", tuple(starts), most=1)
