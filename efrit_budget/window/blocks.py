"""The API's content blocks: what they cost, and what of a reply can be sent back."""

from __future__ import annotations

import json

from efrit_budget.budget.estimate import estimate
from efrit_budget.errors import Json

IMAGE_TOKENS = 1_600
"""What an image of the usual largest size costs; its bytes are no text."""
THINKING = frozenset({"thinking", "redacted_thinking"})


def block_estimate(block: dict[str, Json]) -> int:
    """What a block costs, before calibration."""
    if block.get("type") == "text":
        return estimate(block["text"])
    if block.get("type") == "image":
        return IMAGE_TOKENS
    return estimate(written(block))


def written(value: Json, separators: tuple[str, str] | None = None) -> str:
    """JSON text that UTF-8 can hold, lone surrogates included, and that reads back the same."""
    text = json.dumps(value, ensure_ascii=False, separators=separators)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=separators)
    return text


def is_blank(block: dict[str, Json]) -> bool:
    """Whether a block is a text of nothing but white space, which the API refuses."""
    return block.get("type") == "text" and not block["text"].strip()


def sendable(blocks: list[dict[str, Json]]) -> list[dict[str, Json]]:
    """What of a reply the API takes back.

    It refuses blank texts, thinking that was broken off before its signature, and thinking at
    the end of a message.
    """
    kept = [block for block in blocks if not is_blank(block) and not _is_unsigned(block)]
    while kept and kept[-1].get("type") in THINKING:
        kept.pop()
    return kept


def _is_unsigned(block: dict[str, Json]) -> bool:
    return block.get("type") == "thinking" and not block.get("signature")


def without_thinking(blocks: list[dict[str, Json]]) -> list[dict[str, Json]]:
    """The blocks of a reply that stay after a rewrite."""
    return [block for block in blocks if block.get("type") not in THINKING]
