"""A second count of the budget, made from the request itself."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from efrit_budget.budget.families import Family
from efrit_budget.conversation.name_index import TITLE
from tests.conversation.client import Block, without_marks

ALERT = "[Budget Alert: "
HEADS = ("Earlier turns, a line each; ", "(", TITLE)
THINKING = ("thinking", "redacted_thinking")


@lru_cache(maxsize=1_000)
def estimate(text: str, family: Family) -> int:
    """Return the tokens of a text, cached because the same texts are counted after every step."""
    return family.estimate(text)


@dataclass
class Reply:
    """A reply as the test sent it."""

    turn: int
    blocks: list[Block]
    exact: int | None
    is_bare: bool = False

    def sent_blocks(self) -> list[Block]:
        """Return the blocks that the client sends back."""
        kept = [block for block in self.blocks if block["type"] not in THINKING]
        return kept if self.is_bare else self.blocks

    def parts(self, family: Family) -> Count:
        """Return the cost of the block."""
        if not self.is_bare and self.exact is not None:
            return Count(exact=self.exact, parts=1)
        raw = sum(block_estimate(block, family) for block in self.sent_blocks())
        return Count(raw=raw, parts=1, at_most=self.exact)


@dataclass
class Rate:
    """The sidecar's factor for estimates, the cost of each result beside its text, the family.

    An estimate of a result is up to `slack` tokens too high, as changes of the family round it up.
    """

    factor: float
    frame: float
    family: Family
    slack: int


@dataclass
class Count:
    """Estimated tokens, known tokens, and the number of roundings."""

    raw: float = 0
    exact: int = 0
    parts: int = 0
    at_most: int | None = None
    results: int = 0

    def plus(self, other: Count, factor: float) -> Count:
        """Return the sum of both counts."""
        if other.at_most is not None and other.raw * factor > other.at_most:
            other = Count(exact=other.at_most, parts=1)
        return Count(
            self.raw + other.raw,
            self.exact + other.exact,
            self.parts + other.parts,
            results=self.results + other.results,
        )

    def agrees_with(self, counted: int, rate: Rate) -> bool:
        """Return whether a reported count equals this one, allowing for rounding.

        Each part is rounded up; the factor is given to four digits, a result's cost beside its text
        to one.
        """
        low = self.raw * (rate.factor - 6e-5) + self.results * (rate.frame - 0.06)
        high = (self.raw + self.results * rate.slack) * (rate.factor + 6e-5)
        high += self.results * (rate.frame + 0.06) + self.parts
        return math.floor(low) <= counted - self.exact <= math.ceil(high)


@dataclass
class Tiers:
    """The counts of the tiers that a client can tell apart."""

    system: Count = field(default_factory=Count)
    user_message: Count = field(default_factory=Count)
    rest: Count = field(default_factory=Count)


def block_estimate(block: Block, family: Family) -> int:
    """Return the tokens of a block: of its text, of an image by the piece, else of its JSON."""
    if block["type"] == "text":
        return estimate(block["text"], family)
    if block["type"] == "image":
        return 1_600
    return estimate(json.dumps(without_marks(block), ensure_ascii=False), family)


def recount(
    system: Iterable[Block],
    tools: Iterable[Block],
    messages: list[Block],
    replies: list[Reply],
    unsent: Iterable[str],
    rate: Rate,
) -> Tiers:
    """Count the tiers from the parts of the request and the results about to be sent."""
    found, factor, family = Tiers(), rate.factor, rate.family
    for block in system:
        found.system = found.system.plus(Count(estimate(block["text"], family), parts=1), factor)
    for tool in tools:
        written = json.dumps(without_marks(tool), ensure_ascii=False, separators=(",", ":"))
        found.system = found.system.plus(Count(estimate(written, family), parts=1), factor)
    for count, is_request in _message_counts(messages, replies, family):
        if is_request:
            found.user_message = found.user_message.plus(count, factor)
        else:
            found.rest = found.rest.plus(count, factor)
    for delivered in unsent:
        count = Count(estimate(delivered, family), parts=1, results=1)
        found.rest = found.rest.plus(count, factor)
    return found


def _message_counts(
    messages: list[Block], replies: list[Reply], family: Family
) -> Iterator[tuple[Count, bool]]:
    left = iter(replies)
    for at, message in enumerate(messages):
        blocks: list[Any] = message["content"]
        if message["role"] == "assistant":
            for reply in _replies_in(blocks, left):
                yield reply.parts(family), False
            continue
        for number, block in enumerate(blocks):
            is_head = at == number == 0 and block.get("text", "").startswith(HEADS)
            yield _count_of(block, family, is_head=is_head), _is_request(block) and not is_head


def _replies_in(blocks: list[Block], left: Iterator[Reply]) -> Iterator[Reply]:
    """Yield the replies whose blocks make up a message; replies between them have left."""
    while blocks:
        reply = next(left)
        sent = reply.sent_blocks()
        if sent and blocks[: len(sent)] == sent:
            blocks = blocks[len(sent) :]
            yield reply


def _is_request(block: Block) -> bool:
    if block["type"] == "tool_result":
        return False
    return not (block["type"] == "text" and block["text"].startswith(ALERT))


def _count_of(block: Block, family: Family, *, is_head: bool) -> Count:
    if is_head:
        lines = block["text"].splitlines(keepends=True)
        return Count(sum(estimate(line, family) for line in lines), parts=1)
    if block["type"] == "tool_result":
        raw = sum(block_estimate(part, family) for part in block["content"])
        return Count(raw, parts=1, results=1)
    return Count(block_estimate(block, family), parts=1)
