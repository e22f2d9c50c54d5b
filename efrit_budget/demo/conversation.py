"""A parsed request: blocks in one form for all APIs, each with its place."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from efrit_budget.errors import Json, JsonObject

THINKING = frozenset({"thinking", "redacted_thinking"})


@dataclass(frozen=True)
class Placed:
    """A block and its place in the request."""

    block: JsonObject
    message: int
    index: int

    @property
    def path(self) -> str:
        """The place as errors name it."""
        return f"messages.{self.message}.content.{self.index}"

    @property
    def type(self) -> str:
        """The block's type."""
        return str(self.block["type"])


@dataclass
class Turn:
    """Adjacent messages of one role, which are read as one; a system message stays alone."""

    role: str
    message: int
    blocks: list[Placed] = field(default_factory=list)
    is_cleared: bool = False
    """True for a system message for one turn only, once the next user message has come."""

    def of_type(self, *types: str) -> list[Placed]:
        """Return the blocks of these types."""
        return [placed for placed in self.blocks if placed.type in types]


@dataclass(frozen=True)
class ParsedRequest:
    """A request with its tools, system blocks and turns in one form."""

    body: JsonObject
    tools: list[JsonObject]
    system: list[JsonObject]
    turns: list[Turn]
    max_tokens: int | None
    """The most tokens of the reply, None if the request does not say."""
    user_id: str | None = None
    thinking: JsonObject = field(default_factory=dict)
    """The thinking parameter in the form of the Messages API; empty without one."""

    @property
    def model(self) -> str:
        """The model's name."""
        return str(self.body["model"])

    def all_blocks(self) -> Iterator[Placed]:
        """Yield every block of the messages."""
        for turn in self.turns:
            yield from turn.blocks

    def without(self, dropped: frozenset[str]) -> ParsedRequest:
        """Return the request without the blocks whose paths are in `dropped`."""
        turns = [
            replace(turn, blocks=[one for one in turn.blocks if one.path not in dropped])
            for turn in self.turns
        ]
        return replace(self, turns=turns)


def add_message(turns: list[Turn], number: int, role: str, blocks: list[JsonObject]) -> None:
    """Append a message to the turns: to the last one if that has the same role."""
    if not turns or role == "system" or turns[-1].role != role:
        turns.append(Turn(role, number))
    turns[-1].blocks += [Placed(block, number, at) for at, block in enumerate(blocks)]


def as_blocks(content: Any) -> Any:
    """Return a string as a list of one text block, anything else unchanged."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def plain(value: JsonObject) -> JsonObject:
    """Return a block or tool in canonical form: no cache mark or null, sorted keys, same defaults.

    A tool's input or schema stays as it was sent, with its order.
    """
    if value.get("type") == "tool_result":
        content = [plain(block) for block in as_blocks(value.get("content") or [])]
        value = {"is_error": False, **value, "content": content}
    fields = {
        name: value[name]
        for name in sorted(value)
        if name != "cache_control" and value[name] is not None
    }
    if fields.get("caller") == {"type": "direct"}:
        del fields["caller"]
    return fields


def canonical(value: Json) -> bytes:
    """Encode JSON as bytes: the same for equal values whose members are in the same order."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
