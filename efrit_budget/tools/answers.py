"""Fit answers to `max_tokens` and state how much they show."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from efrit_budget.budget.plain import dearest
from efrit_budget.memory.wording import budget_line, navigation_hint
from efrit_budget.results.body import Body
from efrit_budget.results.delivery import MARGIN_PERCENT
from efrit_budget.results.footer import LONGEST_FOOTER, LONGEST_NAVIGATION
from efrit_budget.results.marks import own
from efrit_budget.results.packer import Section, inside_out, whole, within
from efrit_budget.results.pages import Cost, page
from efrit_budget.tools.base import Outcome, ToolContext

DRIFT = 50
"""A long text's cost may change by a fiftieth of itself when its last lines change."""
LEAST_ROOM = 30
"""With room for fewer tokens, a text is not cut into pages beforehand."""


@dataclass(frozen=True)
class Found:
    """Everything that an answer can show, before it is cut to fit."""

    lead: str
    """The first lines of the answer."""
    sections: Sequence[Section]
    noun: str
    total: int
    """The number of findings in all, including those left out because of a limit."""
    hint: str
    """The advice behind the figures in the line on how many findings are shown."""

    def of(self, body: Body) -> Body:
        """Return the body with the total and the hint of this answer."""
        return replace(body, total=self.total, hint=self.hint)


def fitted(found: Found, max_tokens: int | None, context: ToolContext) -> Outcome:
    """Return the whole answer if it fits; else cut to `max_tokens`, or in pages without that."""
    price = dearest(context.cost)
    body = found.of(whole(found.lead, found.sections, found.noun))
    hint = navigation_hint(len(body.items), found.total, found.hint)
    if price(f"{body.text}{hint and own(hint)}{LONGEST_FOOTER}") <= context.allowance:
        return Outcome(body=body)
    if max_tokens is None:
        return Outcome(body=_paged_body(found, body, context.allowance, price))
    whole_allowance = context.allowance * 100 // (100 - MARGIN_PERCENT)
    return _cut_answer(found, min(max_tokens, whole_allowance), context.allowance, price)


def _paged_body(found: Found, body: Body, allowance: int, price: Cost) -> Body:
    """Return the body with the focus of the first section, if any, on the first page."""
    section = found.sections[0]
    if section.focus is None:
        return body
    room = (
        allowance
        - allowance // DRIFT
        - price(f"{found.lead}{LONGEST_NAVIGATION}\n{LONGEST_FOOTER}")
    )
    return found.of(inside_out(found.lead, section, found.noun, room, price))


def _cut_answer(found: Found, budget: int, allowance: int, price: Cost) -> Outcome:
    """Return the findings that fit beside the budget line, or where none fits, beside a hint.

    If none fits either way, return the line or the hint alone.
    """
    line = partial(budget_line, budget=budget, total=found.total, noun=found.noun)
    tail = f"{line(budget, shown=found.total)}{LONGEST_FOOTER}"
    room = allowance - allowance // DRIFT
    for lead in (found.lead, ""):
        answer = within(lead, found.sections, found.noun, room, price, tail)
        if answer is not None and answer.shown:
            break
    hint = f"{found.noun}. Increase max_tokens."
    if answer is None or not answer.shown:
        tail = f"{own(navigation_hint(found.total - 1, found.total, hint))}{LONGEST_FOOTER}"
        bare = within("", found.sections, found.noun, room, price, tail)
        if bare is not None and bare.shown:
            return Outcome(body=replace(found.of(bare.body), hint=hint))
    if answer is not None:
        budget_text = partial(line, shown=answer.shown)
        return Outcome(body=found.of(answer.body), budget_line=budget_text)
    nothing = Body("", found.noun, data={found.noun: []}, total=found.total)
    if price(f"{line(budget, shown=0)}{LONGEST_FOOTER}") <= allowance:
        nothing = replace(nothing, hint=found.hint)
        return Outcome(body=nothing, budget_line=partial(line, shown=0))
    return Outcome(body=replace(nothing, hint=hint))


def paged(text: str, max_tokens: int | None, context: ToolContext) -> Body:
    """Return a text as a body, divided into pages of at most `max_tokens` if that is given."""
    if max_tokens is None:
        return Body(text)
    price = dearest(context.cost)
    if price(f"{text}{LONGEST_FOOTER}") <= context.allowance:
        return Body(text)
    room = context.allowance - price(f"{LONGEST_NAVIGATION}\n{LONGEST_FOOTER}")
    if room < LEAST_ROOM:
        return Body(text)
    body, starts = Body(text), [0]
    while (end := page(body, starts[-1], room, price).end) < len(text):
        starts.append(end)
    return Body(text, "pages", tuple(starts), most=1)
