"""A parsed request: blocks in one form, each with its place."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from efrit_budget.demo.shapes import as_blocks
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
    """Adjacent messages of one role, which the API reads as one; a system message stays alone."""

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

    @property
    def model(self) -> str:
        """The model's name."""
        return str(self.body["model"])

    @property
    def thinking(self) -> JsonObject:
        """The request's thinking parameter; empty without one."""
        return self.body.get("thinking") or {}

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


def conversation(body: JsonObject) -> ParsedRequest:
    """Return the parsed request of a body whose shape was checked."""
    turns: list[Turn] = []
    for number, message in enumerate(body["messages"]):
        role = message["role"]
        if not turns or role == "system" or turns[-1].role != role:
            turns.append(Turn(role, number))
        blocks = as_blocks(message["content"])
        turns[-1].blocks += [Placed(block, number, at) for at, block in enumerate(blocks)]
    last_user = max((turn.message for turn in turns if turn.role == "user"), default=-1)
    for turn in turns:
        message = body["messages"][turn.message]
        turn.is_cleared = message.get("clear_at") == "next_user_message" and (
            turn.message < last_user
        )
    return ParsedRequest(
        body=body,
        tools=body.get("tools") or [],
        system=as_blocks(body.get("system") or []),
        turns=turns,
    )


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
