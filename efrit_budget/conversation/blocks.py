"""Compute the cost of the API's content blocks; select those that can be sent back."""

import json
from collections.abc import Iterator

from efrit_budget.budget.families import Family
from efrit_budget.errors import Json, JsonObject

IMAGE_TOKENS = 1_600
"""The tokens charged for any image: those of a large one, whatever the number of its bytes."""
REASONING = "field"
"""The member of a thinking block that names the field of a chat message which had the text."""
THINKING = frozenset({"thinking", "redacted_thinking"})
OF_REPLIES = THINKING | {"text", "tool_use"}
"""The types of blocks that replies to our requests have."""


def block_estimate(block: JsonObject, family: Family) -> int:
    """Return a block's estimated tokens."""
    if block.get("type") == "text":
        return family.estimate(block["text"])
    if block.get("type") == "image":
        return IMAGE_TOKENS
    return family.estimate(valid_json(block))


def valid_json(value: Json, separators: tuple[str, str] | None = None) -> str:
    """Return a value as JSON text; escape all but ASCII only if UTF-8 cannot encode the text."""
    text = json.dumps(value, ensure_ascii=False, separators=separators)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=separators)
    return text


def leaves(value: Json) -> Iterator[Json]:
    """Yield the values in a JSON value that are neither lists nor objects, in order."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for member in value:
            yield from leaves(member)
    else:
        yield value


def readable_texts(block: JsonObject) -> Iterator[str]:
    """Yield the texts of a block that the model can read: not ids, signatures and images."""
    kind = block.get("type")
    if kind == "tool_result":
        for part in block["content"]:
            yield from readable_texts(part)
    elif kind == "tool_use":
        yield from (str(leaf) for leaf in leaves(block["input"]) if leaf is not None)
    elif kind in ("text", "thinking"):
        yield str(block[kind])


def is_blank(block: JsonObject) -> bool:
    """Return whether a block is a blank text, which the API rejects."""
    return block.get("type") == "text" and not block["text"].strip()


def sendable_blocks(blocks: list[JsonObject]) -> list[JsonObject]:
    """Return the blocks of a reply that the API accepts back.

    The API refuses blank texts, thinking without a signature (it was broken off), and thinking
    at the end of a message. Blocks of other types, for which no request asks, it may refuse.
    """
    accepted = [
        block
        for block in blocks
        if block.get("type") in OF_REPLIES and not is_blank(block) and not _is_unsigned(block)
    ]
    while accepted and accepted[-1].get("type") in THINKING:
        accepted.pop()
    return accepted


def _is_unsigned(block: JsonObject) -> bool:
    """Return whether a block is thinking that neither a signature nor a `field` lets come back."""
    return block.get("type") == "thinking" and not (block.get("signature") or block.get(REASONING))


def without_thinking(blocks: list[JsonObject]) -> list[JsonObject]:
    """Return the blocks of a reply without thinking."""
    return [block for block in blocks if block.get("type") not in THINKING]
