"""Read the JSON lines that Claude Code keeps of a session."""

from collections.abc import Iterable, Iterator
from typing import Any

from efrit_budget.errors import JsonObject
from efrit_budget.replay.recording import (
    RecordedTurn,
    Recording,
    RecordingDraft,
    Result,
    as_blocks,
    as_text,
    seconds,
)

REPLY_KINDS = frozenset({"text", "thinking", "redacted_thinking", "tool_use"})


def fits(event: JsonObject) -> bool:
    """Return whether Claude Code wrote this line."""
    return event.get("type") in ("user", "assistant") and isinstance(event.get("message"), dict)


def read(name: str, events: Iterable[JsonObject]) -> Recording:
    """Return the recording; each line has one block of a reply, sub-agents are left out."""
    draft = RecordingDraft()
    turns: dict[str, RecordedTurn] = {}
    for event in events:
        if not fits(event) or event.get("isSidechain"):
            continue
        message, moment = event["message"], seconds(event.get("timestamp"))
        if event["type"] == "user":
            _add_user(draft, message.get("content"), moment)
            continue
        key = str(message.get("id") or len(draft.turns))
        if key not in turns:
            turns[key] = draft.begin_reply(str(message.get("model") or ""), moment)
        turn = turns[key]
        turn.usage = _counts(message.get("usage")) or turn.usage
        for block in _reply_blocks(message.get("content")):
            draft.add_block(turn, block, moment)
    return draft.recording(name)


def _add_user(draft: RecordingDraft, content: Any, moment: float) -> None:
    blocks = content if isinstance(content, list) else []
    for block in blocks:
        if isinstance(block, dict) and block.get("type") == "tool_result":
            result = Result(as_text(block.get("content")), bool(block.get("is_error")))
            draft.add_result(str(block.get("tool_use_id")), result, moment)
    if said := as_blocks(content):
        draft.add_message(said, moment)


def _reply_blocks(content: Any) -> Iterator[JsonObject]:
    for block in content if isinstance(content, list) else as_blocks(content):
        if isinstance(block, dict) and block.get("type") in REPLY_KINDS:
            yield block


def _counts(usage: Any) -> dict[str, int] | None:
    found = usage if isinstance(usage, dict) else {}
    return {key: value for key, value in found.items() if isinstance(value, int)} or None
