"""The ledger counted once more, from the request itself."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from efrit_budget.budget import estimate as estimator
from tests.window.client import Block, without_marks

ALERT = "[Budget Alert: "
HEADS = ("Earlier turns, a line each; ", "(")
THINKING = ("thinking", "redacted_thinking")


@lru_cache(maxsize=1_000)
def estimate(text: str) -> int:
    """What a text costs; the same ones are counted after every step."""
    return estimator.estimate(text)


@dataclass
class Reply:
    """A reply as the test gave it."""

    turn: int
    blocks: list[Block]
    exact: int | None
    is_bare: bool = False

    def standing(self) -> list[Block]:
        """The blocks as they stand in the conversation."""
        kept = [block for block in self.blocks if block["type"] not in THINKING]
        return kept if self.is_bare else self.blocks

    def parts(self) -> Count:
        """What it costs."""
        if not self.is_bare and self.exact is not None:
            return Count(exact=self.exact, parts=1)
        raw = sum(map(block_estimate, self.standing()))
        return Count(raw=raw, parts=1, at_most=self.exact)


@dataclass
class Count:
    """Estimated tokens before calibration, tokens known, and how many roundings there may be."""

    raw: float = 0
    exact: int = 0
    parts: int = 0
    at_most: int | None = None

    def plus(self, other: Count, factor: float) -> Count:
        """Both together."""
        if other.at_most is not None and other.raw * factor > other.at_most:
            other = Count(exact=other.at_most, parts=1)
        return Count(self.raw + other.raw, self.exact + other.exact, self.parts + other.parts)

    def tokens(self, factor: float) -> float:
        """In the model's tokens."""
        return self.raw * factor + self.exact

    def agrees_with(self, counted: int, factor: float) -> bool:
        """Whether a count is this one; the factor is told to four digits, each part rounded up."""
        low = self.raw * (factor - 6e-5) + self.exact
        high = self.raw * (factor + 6e-5) + self.exact + self.parts
        return math.floor(low) <= counted <= math.ceil(high)


@dataclass
class Tiers:
    """The counts of the tiers that can be told apart from outside."""

    system: Count = field(default_factory=Count)
    user_message: Count = field(default_factory=Count)
    rest: Count = field(default_factory=Count)


def block_estimate(block: Block) -> int:
    """What a block costs: texts as they are, images by the piece, the rest as JSON."""
    if block["type"] == "text":
        return estimate(block["text"])
    if block["type"] == "image":
        return 1_600
    return estimate(json.dumps(without_marks(block), ensure_ascii=False))


def recount(
    system: Iterable[Block],
    tools: Iterable[Block],
    messages: list[Block],
    replies: list[Reply],
    unsent: Iterable[str],
    factor: float,
) -> Tiers:
    """The tiers as the parts of the request have it, and results that are about to be sent."""
    found = Tiers()
    for block in system:
        found.system = found.system.plus(Count(estimate(block["text"]), parts=1), factor)
    for tool in tools:
        written = json.dumps(without_marks(tool), ensure_ascii=False, separators=(",", ":"))
        found.system = found.system.plus(Count(estimate(written), parts=1), factor)
    for count, is_request in _message_counts(messages, replies):
        if is_request:
            found.user_message = found.user_message.plus(count, factor)
        else:
            found.rest = found.rest.plus(count, factor)
    for delivered in unsent:
        found.rest = found.rest.plus(Count(estimate(delivered), parts=1), factor)
    return found


def _message_counts(messages: list[Block], replies: list[Reply]) -> Iterator[tuple[Count, bool]]:
    left = iter(replies)
    for at, message in enumerate(messages):
        blocks: list[Any] = message["content"]
        if message["role"] == "assistant":
            for reply in _replies_in(blocks, left):
                yield reply.parts(), False
            continue
        for number, block in enumerate(blocks):
            is_head = at == number == 0 and block.get("text", "").startswith(HEADS)
            yield _count_of(block, is_head=is_head), _is_request(block) and not is_head


def _replies_in(blocks: list[Block], left: Iterator[Reply]) -> Iterator[Reply]:
    """The replies whose blocks make up a message; those between them have left the window."""
    while blocks:
        reply = next(left)
        standing = reply.standing()
        if standing and blocks[: len(standing)] == standing:
            blocks = blocks[len(standing) :]
            yield reply


def _is_request(block: Block) -> bool:
    if block["type"] == "tool_result":
        return False
    return not (block["type"] == "text" and block["text"].startswith(ALERT))


def _count_of(block: Block, *, is_head: bool) -> Count:
    if is_head:
        return Count(sum(map(estimate, block["text"].splitlines(keepends=True))), parts=1)
    if block["type"] == "tool_result":
        return Count(sum(map(block_estimate, block["content"])), parts=1)
    return Count(block_estimate(block), parts=1)
