"""Read the JSON lines that pi keeps of a session."""

from collections.abc import Iterable
from typing import Any

from efrit_budget.errors import JsonObject
from efrit_budget.replay.recording import (
    Recording,
    RecordingDraft,
    Result,
    as_blocks,
    as_text,
    seconds,
)

USAGE_NAMES = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cacheRead": "cache_read_input_tokens",
    "cacheWrite": "cache_creation_input_tokens",
}


def fits(event: JsonObject) -> bool:
    """Return whether pi wrote this line."""
    return event.get("type") == "session" and "id" in event


def read(name: str, events: Iterable[JsonObject]) -> Recording:
    """Return the recording; replies that were broken off without content are left out."""
    draft = RecordingDraft()
    for event in events:
        message = event.get("message")
        if event.get("type") != "message" or not isinstance(message, dict):
            continue
        moment = seconds(event.get("timestamp"))
        if message.get("role") == "user":
            draft.add_message(as_blocks(message.get("content")), moment)
        elif message.get("role") == "toolResult":
            result = Result(as_text(message.get("content")), bool(message.get("isError")))
            draft.add_result(str(message.get("toolCallId")), result, moment)
        elif message.get("role") == "assistant":
            _add_reply(draft, message, moment)
    return draft.recording(name)


def _add_reply(draft: RecordingDraft, message: JsonObject, moment: float) -> None:
    blocks = [_block(block) for block in message.get("content") or [] if isinstance(block, dict)]
    if not any(blocks):
        return
    turn = draft.begin_reply(str(message.get("model") or ""), moment)
    turn.usage = _counts(message.get("usage"))
    for block in filter(None, blocks):
        draft.add_block(turn, block, moment)


def _block(block: JsonObject) -> JsonObject | None:
    """Return a block as the API has it, or None if it has none like that."""
    if block.get("type") == "toolCall":
        return {
            "type": "tool_use",
            "id": str(block["id"]),
            "name": str(block["name"]),
            "input": block.get("arguments") or {},
        }
    if block.get("type") == "thinking":
        signature = str(block.get("thinkingSignature") or "")
        return {
            "type": "thinking",
            "thinking": str(block.get("thinking") or ""),
            "signature": signature,
        }
    return {"type": "text", "text": str(block["text"])} if block.get("type") == "text" else None


def _counts(usage: Any) -> dict[str, int] | None:
    found = usage if isinstance(usage, dict) else {}
    counts = {ours: int(found.get(theirs) or 0) for theirs, ours in USAGE_NAMES.items()}
    return counts if any(counts.values()) else None
