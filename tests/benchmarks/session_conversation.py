"""The client's side of a conversation: it builds requests and checks them by the API's rules."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from efrit_budget.errors import JsonObject
from tests.benchmarks.session_accounting import Brick, Truth, bricks_of, message_bricks, unmarked

THINKING = {"thinking", "redacted_thinking"}
SIGNATURE_LENGTH = 400

CONTINUED = re.compile(r"\A[^\n]* \(continued\)\n")
"""The header of a page that goes on within a group."""


class Conversation:
    """Appends the messages of `turn/begin`, or takes its rewrite; notes each broken rule."""

    def __init__(self, truth: Truth) -> None:
        self._truth = truth
        self._epoch = 0
        self._fixed = ""
        self._fixed_bricks: list[Brick] = []
        self._messages: list[JsonObject] = []
        self._bricks: list[list[Brick]] = []
        self._prefixes: list[str] = []
        """For each message, a hash of all messages before it; the last hash covers all of them."""
        self._bound: dict[str, str] = {}
        self._sent: list[str] = []
        self.delivered: dict[str, str] = {}
        self.in_full: set[str] = set()
        self.problems: list[str] = []

    def take(self, turn: Mapping[str, Any]) -> None:
        """Add a turn's messages, as the client would send them."""
        fixed = json.dumps([list(map(unmarked, turn[part])) for part in ("tools", "system")])
        rewrite, append = turn["rewrite"], turn["append"]
        if rewrite is not None:
            self._messages, self._bricks, self._prefixes, self.in_full = [], [], [], set()
            self._require(turn["epoch"] == self._epoch + 1, "a rewrite without a new epoch")
        else:
            same = turn["epoch"] == self._epoch and fixed == self._fixed
            self._require(same or not self._epoch, "tools or system changed within an epoch")
        if fixed != self._fixed or not self._prefixes:
            self._fixed = fixed
            self._fixed_bricks = bricks_of(turn["tools"], turn["system"], (), self._truth)
            self._prefixes = [_hash(fixed)]
        self._epoch = turn["epoch"]
        for message in (rewrite or append or {"messages": []})["messages"]:
            self._add(message)
        self._check(rewritten=rewrite is not None)

    def reply(self, content: list[JsonObject]) -> None:
        """Add the model's reply, as the client keeps it."""
        self._add({"role": "assistant", "content": content})

    def thinking(self, tokens: int) -> JsonObject:
        """Return a thinking block that is bound to everything before it."""
        seal = _hash(f"{self._prefixes[-1]}{len(self._bound)}")
        signature = (seal * SIGNATURE_LENGTH)[:SIGNATURE_LENGTH]
        self._bound[signature] = self._prefixes[-1]
        self._truth.thinking[signature] = tokens
        return {"type": "thinking", "thinking": "", "signature": signature}

    def bricks(self) -> list[Brick]:
        """Return the request as the cache sees it."""
        return [*self._fixed_bricks, *(brick for bricks in self._bricks for brick in bricks)]

    def shows(self, stretch: str) -> bool:
        """Return whether a tool's result in the window contains this text."""
        return any(
            block["type"] == "tool_result" and stretch in CONTINUED.sub("", _text(block), count=1)
            for message in self._messages
            for block in message["content"]
        )

    def _add(self, message: JsonObject) -> None:
        bricks = message_bricks(len(self._messages), message, self._truth)
        self._messages.append(message)
        self._bricks.append(bricks)
        written = "".join(brick.key for brick in bricks)
        self._prefixes.append(_hash(self._prefixes[-1] + written))
        for block in message["content"]:
            if block["type"] == "tool_result" and _text(block) == self.delivered.get(
                block["tool_use_id"]
            ):
                self.in_full.add(block["tool_use_id"])

    def _require(self, holds: bool, problem: str) -> None:
        if not holds:
            self.problems.append(f"epoch {self._epoch}, {len(self._messages)} messages: {problem}")

    def _check(self, *, rewritten: bool) -> None:
        """Fail if the API would refuse the messages, or if an epoch changed sent ones."""
        sent = [json.dumps(unmarked_message(message)) for message in self._messages]
        if not rewritten:
            self._require(sent[: len(self._sent)] == self._sent, "the request does not extend")
        self._sent = sent
        self._require(self._messages[0]["role"] == "user", "the first message is not the person's")
        last = self._messages[-1]["role"]
        self._require(last in {"user", "system"}, f"the last message is of role {last}")
        for index, message in enumerate(self._messages):
            self._check_message(index, message)
            thinks = any(block["type"] in THINKING for block in message["content"])
            self._require(not (rewritten and thinks), "thinking lived through a rewrite")

    def _check_message(self, index: int, message: JsonObject) -> None:
        before = self._messages[index - 1] if index else None
        role, content = message["role"], message["content"]
        self._require(bool(content), "an empty message")
        if before is not None:
            allowed = {"user": {"assistant"}, "assistant": {"user", "system"}, "system": {"user"}}
            self._require(before["role"] in allowed[role], f"{role} after {before['role']}")
        answers = [block["tool_use_id"] for block in content if block["type"] == "tool_result"]
        asked = [
            block["id"]
            for block in (before or {"content": []})["content"]
            if block["type"] == "tool_use"
        ]
        self._require(answers == asked, f"message {index}: tool uses and results do not match")
        kinds = [block["type"] for block in content]
        self._require("tool_result" not in kinds[len(answers) :], "a result behind other blocks")
        for block in content:
            if block["type"] in THINKING:
                bound = self._bound[block["signature"]] == self._prefixes[index]
                self._require(bound, f"message {index}: thinking behind a changed past")


def unmarked_message(message: JsonObject) -> JsonObject:
    """Return a message without cache marks."""
    return {**message, "content": [unmarked(block) for block in message["content"]]}


def _text(block: JsonObject) -> str:
    return "".join(str(part.get("text", "")) for part in block["content"])


def _hash(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()
