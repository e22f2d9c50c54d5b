"""The rules by which the Messages API refuses a list of messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Message = dict[str, Any]
THINKING = ("thinking", "redacted_thinking")


def violations(messages: list[Message], *, system_messages: bool) -> list[str]:
    """Return every rule of the API that the messages of a request break."""
    if not messages:
        return ["there are no messages"]
    found = [] if messages[0]["role"] == "user" else ["the first message is not the user's"]
    for at, message in enumerate(messages):
        before = messages[at - 1] if at else None
        problems = [*_content(message), *_order(message, before, system_messages)]
        found += [f"messages.{at}: {problem}" for problem in problems]
    return [*found, *_answers(messages)]


def _content(message: Message) -> Iterator[str]:
    if not message["content"]:
        yield "no content"
    for block in message["content"]:
        if block["type"] == "text" and not block["text"].strip():
            yield "a blank text"
        if block["type"] == "tool_result" and not block["content"]:
            yield "an empty tool result"
    if message["role"] == "assistant" and message["content"][-1]["type"] in THINKING:
        yield "thinking at the end"


def _order(message: Message, before: Message | None, system_messages: bool) -> Iterator[str]:
    if message["role"] not in ("user", "assistant", "system"):
        yield f"role {message['role']}"
    if message["role"] == "system":
        if not system_messages:
            yield "role system on a model that takes none"
        if before is None or before["role"] != "user":
            yield "role system not directly after a user turn"


def _answers(messages: list[Message]) -> Iterator[str]:
    """Yield the tool uses and results that do not stand in adjacent messages as pairs."""
    for at, message in enumerate(messages):
        results = [block["tool_use_id"] for block in message["content"] if _is_result(block)]
        before = messages[at - 1]["content"] if at else []
        uses = {block["id"] for block in before if block["type"] == "tool_use"}
        if len(results) != len(set(results)) or set(results) != uses:
            yield f"messages.{at}: answers {results}, asked for {sorted(uses)}"
        if any(map(_is_result, message["content"][len(results) :])):
            yield f"messages.{at}: a tool result behind something else"
    if any(block["type"] == "tool_use" for block in messages[-1]["content"]):
        yield "the last message asks for a tool"


def _is_result(block: dict[str, Any]) -> bool:
    return bool(block["type"] == "tool_result")
