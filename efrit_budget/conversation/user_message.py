"""Store the user message, cut to its tier."""

from dataclasses import replace
from sqlite3 import Connection

from efrit_budget.budget.tiers import Tier
from efrit_budget.characters import sound_text
from efrit_budget.conversation import segments
from efrit_budget.conversation.blocks import block_estimate, valid_json
from efrit_budget.conversation.bounds import Bounds
from efrit_budget.conversation.pieces import Phase
from efrit_budget.conversation.segments import Segment
from efrit_budget.conversation.windows import Window
from efrit_budget.errors import JsonObject
from efrit_budget.results import store as results
from efrit_budget.results.body import Body
from efrit_budget.results.delivery import deliver
from efrit_budget.results.footer import Terms
from efrit_budget.results.marks import quote
from efrit_budget.results.tokens import handle

LEAST_PAGE = 100
"""The least allowance of a cut text, in tokens; a text that costs no more is not cut."""


def store(
    connection: Connection,
    window: Window,
    blocks: list[JsonObject],
    bounds: Bounds,
) -> tuple[Window, tuple[str, ...]]:
    """Store the user message; texts that do not fit its tier are cut to their first page.

    Return the window with its next handle, and a note for the person on each cut text.
    """
    window, blocks, notes = _fit_to_tier(connection, window, blocks, bounds)
    raw = sum(block_estimate(block, bounds.family) for block in blocks)
    key = (window.session_id, window.turn, Phase.REQUEST)
    segments.insert(connection, Segment(*key, "user", valid_json(blocks), raw, raw, window.clock))
    return window, notes


def _fit_to_tier(
    connection: Connection,
    window: Window,
    blocks: list[JsonObject],
    bounds: Bounds,
) -> tuple[Window, list[JsonObject], tuple[str, ...]]:
    """Cut the largest texts until all blocks fit the tier; store each cut text whole as a result.

    Return window, blocks and notes. Images and other blocks stay; the texts make room for them.
    """
    blocks = list(blocks)
    notes: list[str] = []
    costs = [bounds.block_cost(block) for block in blocks]
    texts = [index for index, block in enumerate(blocks) if block.get("type") == "text"]
    for index in sorted(texts, key=lambda index: -costs[index]):
        over = sum(costs) - bounds.limits.tiers[Tier.USER_MESSAGE]
        if over <= 0 or costs[index] <= LEAST_PAGE:
            break
        number, window = window.next_number, replace(window, next_number=window.next_number + 1)
        body = Body(quote(sound_text(blocks[index]["text"])))
        ready = results.packed(connection, body)
        results.put(connection, window.session_id, number, "user_message", ready)
        allowance = max(LEAST_PAGE, costs[index] - over)
        terms = Terms(window.session_id, allowance, bounds.cost, remaining=None, rough=bounds.rough)
        delivery = deliver(body, number, 0, terms, notes=())
        notes.append(_note(costs[index], delivery.end, number, bounds))
        blocks[index] = {"type": "text", "text": delivery.text}
        costs[index] = delivery.tokens
    return window, blocks, tuple(notes)


def _note(tokens: int, sent: int, number: int, bounds: Bounds) -> str:
    """Return the note for the person that only `sent` characters of a text were sent."""
    return (
        f"The request's text of ~{tokens:,} tokens is more than its tier of "
        f"{bounds.limits.tiers[Tier.USER_MESSAGE]:,}: its first {sent:,} characters were sent, "
        f"the whole is stored as {handle(number)}."
    )
