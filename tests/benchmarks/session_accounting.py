"""The true cost of a request: real tokens of its blocks, and the share read from the cache."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from efrit_budget.errors import Json, JsonObject
from tests.benchmarks.tokenizers_real import claude

READ, WRITE, INPUT = 0.1, 1.25, 1.0
FOOTER = "\n📏"
BLOCK_OVERHEAD = 4
"""Tokens that mark where a block begins, ends, and whose it is."""

_known: dict[str, int] = {}


def real(text: str) -> int:
    """Return a text's tokens by Claude's tokenizer; each distinct text is counted once.

    The footer is counted apart, because it differs between runs while the text above does not.
    """
    body, mark, footer = text.rpartition(FOOTER)
    return _counted(body) + _counted(mark + footer) if mark else _counted(text)


def learn(text: str, tokens: int) -> None:
    """Store a count that is known already."""
    _known[text] = tokens


def _counted(text: str) -> int:
    if text and text not in _known:
        _known[text] = claude()([text])[0]
    return _known.get(text, 0)


@dataclass(frozen=True)
class Brick:
    """A block of a request: its identity for the cache, and its true tokens."""

    key: str
    tokens: float


@dataclass(frozen=True)
class Charged:
    """One request as the API counts it."""

    prompt: int
    read: int
    written: int

    @property
    def fresh(self) -> int:
        """The tokens neither read from the cache nor written to it."""
        return self.prompt - self.read - self.written

    @property
    def cost(self) -> float:
        """In tokens at the input price."""
        return self.fresh * INPUT + self.written * WRITE + self.read * READ


@dataclass
class Cache:
    """A prompt cache: what a request shares with the one before, block by block, is read."""

    least: int
    _before: list[str] = field(default_factory=list)

    def charge(self, bricks: Sequence[Brick]) -> Charged:
        """Return the cost of a request, given the requests before it."""
        shared = 0.0
        for brick, before in zip(bricks, self._before, strict=False):
            if brick.key != before:
                break
            shared += brick.tokens
        prompt = round(sum(brick.tokens for brick in bricks))
        cached = prompt >= self.least
        self._before = [brick.key for brick in bricks] if cached else []
        read = round(shared) if shared >= self.least else 0
        return Charged(prompt, read, prompt - read if cached else 0)


@dataclass
class Meter:
    """Adds up the requests of a session."""

    prompts: list[int] = field(default_factory=list)
    reads: int = 0
    cost: float = 0.0

    def add(self, charged: Charged) -> None:
        """Add one request to the totals."""
        self.prompts.append(charged.prompt)
        self.reads += charged.read
        self.cost += charged.cost

    @property
    def share(self) -> float:
        """The share of all prompt tokens that came from the cache."""
        return self.reads / max(1, sum(self.prompts))


@dataclass
class Truth:
    """The hidden truth: real tokens of a block, times a factor nobody was told."""

    factor: float
    thinking: dict[str, int] = field(default_factory=dict)
    """The hidden size of each thinking block, by its signature."""

    def of_text(self, text: str) -> float:
        """Return the true tokens of a text."""
        return self.factor * (real(text) + BLOCK_OVERHEAD)

    def of_block(self, block: JsonObject) -> float:
        """Return the true tokens of a content block."""
        kind = block["type"]
        if kind == "thinking":
            return self.thinking[block["signature"]]
        if kind == "tool_use":
            return self.of_text(json.dumps([block["name"], block["input"]]))
        if kind == "tool_result":
            return self.factor * BLOCK_OVERHEAD + sum(map(self.of_block, block["content"]))
        return self.of_text(block["text"])


def unmarked(block: JsonObject) -> JsonObject:
    """Return a block without its cache mark."""
    return {name: value for name, value in block.items() if name != "cache_control"}


def digest(block: Json) -> str:
    """Return a hash of a block; equal blocks have equal hashes."""
    return hashlib.blake2b(json.dumps(block, sort_keys=True).encode(), digest_size=12).hexdigest()


def bricks_of(
    tools: Iterable[JsonObject],
    system: Iterable[JsonObject],
    messages: Iterable[JsonObject],
    truth: Truth,
) -> list[Brick]:
    """Return a request as bricks, in the order of the cache: tools, system, messages."""
    found = [
        Brick(digest(unmarked(tool)), truth.of_text(json.dumps(unmarked(tool)))) for tool in tools
    ]
    found += [Brick(digest(unmarked(block)), truth.of_block(block)) for block in system]
    for index, message in enumerate(messages):
        found += message_bricks(index, message, truth)
    return found


def message_bricks(index: int, message: JsonObject, truth: Truth) -> list[Brick]:
    """Return the bricks of one message; its place and role belong to their identity."""
    head = f"{index}{message['role']}"
    return [
        Brick(head + digest(unmarked(block)), truth.of_block(block)) for block in message["content"]
    ]
