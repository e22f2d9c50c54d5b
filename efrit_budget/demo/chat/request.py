"""Parse a request of the Chat Completions API whose shape was checked."""

import json
import re
from collections.abc import Iterator

from efrit_budget.demo.conversation import ParsedRequest, Turn, add_message, as_blocks
from efrit_budget.errors import Json, JsonObject

SYSTEM = frozenset({"system", "developer"})
REASONING = ("reasoning_content", "reasoning")
"""The fields in which the vendors send the model's thinking, and take it back."""
DATA_URL = re.compile(r"data:(image/[a-z+.-]+);base64,(.*)", re.DOTALL)


def parse_request(body: JsonObject) -> ParsedRequest:
    """Return the parsed request of a body, with blocks in the form of the Messages API."""
    messages, turns = body["messages"], list[Turn]()
    has_system = messages[0]["role"] in SYSTEM
    for number, message in enumerate(messages[has_system:], start=int(has_system)):
        role = "system" if message["role"] in SYSTEM else message["role"]
        add_message(turns, number, role, list(_blocks(message)))
    effort = body.get("reasoning_effort")
    return ParsedRequest(
        body=body,
        tools=body.get("tools") or [],
        system=list(_parts(messages[0]["content"])) if has_system else [],
        turns=turns,
        max_tokens=output_limit(body),
        user_id=body.get("user") or body.get("prompt_cache_key"),
        thinking={"type": "disabled" if effort == "none" else "adaptive", "display": "summarized"},
    )


def output_limit(body: JsonObject) -> int | None:
    """Return the most tokens that the reply may have, None if the request does not say."""
    limit: int | None = body.get("max_completion_tokens") or body.get("max_tokens")
    return limit


def _blocks(message: JsonObject) -> Iterator[JsonObject]:
    """Yield the blocks of a message: thinking, texts and images, tool uses, or a tool's result."""
    if message["role"] == "tool":
        content = list(_parts(message["content"]))
        yield {"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": content}
        return
    for name in REASONING:
        if message.get(name) is not None:
            yield {"type": "thinking", "thinking": message[name], "signature": ""}
    for name in ("content", "refusal"):
        if message.get(name) is not None:
            yield from _parts(message[name])
    for call in message.get("tool_calls") or []:
        function = call["function"]
        yield {
            "type": "tool_use",
            "id": call["id"],
            "name": function["name"],
            "input": _arguments(function["arguments"]),
        }


def _parts(content: Json) -> Iterator[JsonObject]:
    """Yield the parts of a content as blocks."""
    for part in as_blocks(content):
        if part["type"] == "image_url":
            yield {"type": "image", "source": _source(part["image_url"]["url"])}
        else:
            yield {"type": "text", "text": part[part["type"]]}


def _source(url: str) -> JsonObject:
    """Return the source of an image: its bytes if the URL holds them, else the URL."""
    if data := DATA_URL.fullmatch(url):
        return {"type": "base64", "media_type": data[1], "data": data[2]}
    return {"type": "url", "url": url}


def _arguments(text: str) -> Json:
    """Return the arguments of a tool call, or their text if that is no JSON."""
    try:
        parsed: Json = json.loads(text)
    except ValueError:
        return text
    return parsed
