"""Write system text, tools and messages as the Chat Completions API takes them."""

import hashlib
import re
from collections.abc import Iterable, Iterator

from efrit_budget.budget.endpoint import Endpoint, Feature
from efrit_budget.conversation.blocks import REASONING, valid_json
from efrit_budget.errors import JsonObject

REASONING_FIELDS = ("reasoning_content", "reasoning")
NO_REASONING = " "
"""The reasoning of a reply that has none, or whose reasoning was evicted."""
SIGNATURE = "extra_content"
"""The member of a tool use, and of a tool call, with the signature of the thoughts before it."""
UNSIGNED = {"google": {"thought_signature": "skip_thought_signature_validator"}}
"""The value of `SIGNATURE` for a tool call that another model made."""
LONGEST_NAME = 64
DIGEST = 8
"""The characters of a hash that replace the end of a tool's name that is too long."""
SHORT_ID = re.compile(r"[a-zA-Z0-9]{9}")
ANY_ID = re.compile(r".{1,40}")
"""The ids that the API takes; vLLM makes longer ones than OpenAI accepts."""
NO_IMAGE = "[An image was left out: this endpoint takes none here.]"


def system_messages(blocks: Iterable[JsonObject], endpoint: Endpoint) -> list[JsonObject]:
    """Return the messages that stand before all others: one with the system text, or none."""
    text = "\n\n".join(block["text"] for block in blocks)
    return [{"role": _system_role(endpoint), "content": text}] if text else []


def tool(schema: JsonObject) -> JsonObject:
    """Return the schema of a tool."""
    function = {
        "name": tool_name(schema["name"]),
        "description": schema["description"],
        "parameters": schema["input_schema"],
    }
    return {"type": "function", "function": function}


def tool_name(name: str) -> str:
    """Return the name of a tool, shortened if it is longer than the API allows."""
    if len(name) <= LONGEST_NAME:
        return name
    digest = hashlib.blake2b(name.encode(), digest_size=DIGEST // 2).hexdigest()
    return f"{name[: LONGEST_NAME - DIGEST - 1]}_{digest}"


def messages(message: JsonObject, endpoint: Endpoint) -> Iterator[JsonObject]:
    """Yield what a message of the Messages API becomes; a user message may become several."""
    blocks = message["content"]
    if message["role"] == "system":
        yield {"role": _system_role(endpoint), "content": _text(blocks)}
    elif message["role"] == "assistant":
        yield _reply(blocks, endpoint)
    else:
        yield from _user_messages(blocks, endpoint)


def _system_role(endpoint: Endpoint) -> str:
    return "developer" if endpoint.has(Feature.DEVELOPER) else "system"


def _text(blocks: Iterable[JsonObject]) -> str:
    return "\n\n".join(block["text"] for block in blocks if block["type"] == "text")


def _reply(blocks: list[JsonObject], endpoint: Endpoint) -> JsonObject:
    """Return the message of a reply."""
    reply: JsonObject = {"role": "assistant", "content": _text(blocks) or None}
    for block in blocks:
        if block["type"] == "thinking" and block.get(REASONING) in REASONING_FIELDS:
            reply[block[REASONING]] = reply.get(block[REASONING], "") + block["thinking"]
    calls = [_call(block, endpoint) for block in blocks if block["type"] == "tool_use"]
    if endpoint.has(Feature.REASONING_BACK) and not reply.keys() & set(REASONING_FIELDS):
        reply[REASONING_FIELDS[0]] = NO_REASONING
    if calls:
        if endpoint.has(Feature.THOUGHT_SIGNATURES):
            calls[0].setdefault(SIGNATURE, UNSIGNED)
        reply["tool_calls"] = calls
    return reply


def _call(block: JsonObject, endpoint: Endpoint) -> JsonObject:
    call: JsonObject = {
        "id": _id(block["id"], endpoint),
        "type": "function",
        "function": {"name": tool_name(block["name"]), "arguments": valid_json(block["input"])},
    }
    if SIGNATURE in block and endpoint.has(Feature.THOUGHT_SIGNATURES):
        call[SIGNATURE] = block[SIGNATURE]
    return call


def _id(tool_use_id: str, endpoint: Endpoint) -> str:
    """Return the id of a tool call, replaced by a hash if the endpoint would refuse it."""
    if (SHORT_ID if endpoint.has(Feature.SHORT_IDS) else ANY_ID).fullmatch(tool_use_id):
        return tool_use_id
    return hashlib.blake2b(tool_use_id.encode(), digest_size=5).hexdigest()[:9]


def _user_messages(blocks: list[JsonObject], endpoint: Endpoint) -> Iterator[JsonObject]:
    """Yield a message for each tool result, then one for the rest.

    Where nothing of the user's may follow a result, the rest stands at the end of the last one.
    """
    results = [block for block in blocks if block["type"] == "tool_result"]
    rest = [block for block in blocks if block["type"] != "tool_result"]
    is_strict = bool(results) and endpoint.has(Feature.ALTERNATION)
    takes_images = endpoint.has(Feature.IMAGES) and not is_strict
    written: list[JsonObject] = [
        {
            "role": "tool",
            "tool_call_id": _id(result["tool_use_id"], endpoint),
            "content": _text_without_images(result["content"], takes_images=takes_images),
        }
        for result in results
    ]
    if takes_images:
        rest = [image for result in results for image in _images(result["content"])] + rest
    if is_strict and rest:
        written[-1]["content"] += "\n\n" + _text_without_images(rest, takes_images=False)
    elif rest:
        written.append({"role": "user", "content": _user_content(rest, takes_images=takes_images)})
    yield from written


def _images(blocks: Iterable[JsonObject]) -> list[JsonObject]:
    return [block for block in blocks if block["type"] == "image"]


def _text_without_images(blocks: list[JsonObject], *, takes_images: bool) -> str:
    """Return the text of blocks, with a line for images that are sent nowhere."""
    left_out = [] if takes_images else [{"type": "text", "text": NO_IMAGE} for _ in _images(blocks)]
    return _text([*left_out, *blocks])


def _user_content(blocks: list[JsonObject], *, takes_images: bool) -> str | list[JsonObject]:
    """Return the content of a user message: a text, or parts if it has images."""
    if not takes_images or not _images(blocks):
        return _text_without_images(blocks, takes_images=takes_images)
    return [_part(block) for block in blocks]


def _part(block: JsonObject) -> JsonObject:
    if block["type"] == "text":
        return {"type": "text", "text": block["text"]}
    source = block["source"]
    url = source.get("url") or f"data:{source['media_type']};base64,{source['data']}"
    return {"type": "image_url", "image_url": {"url": url}}
