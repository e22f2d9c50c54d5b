"""A whole reply as Chat Completions writes it."""

from collections.abc import Mapping

from efrit_budget.demo.replies import Reply
from efrit_budget.errors import Json, JsonObject

FINISH: Mapping[str, str] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
"""The finish reasons, by the stop reason of a scenario."""
FINGERPRINT = "fp_demo"


def completion(reply: Reply, reasoning: str) -> JsonObject:
    """Return the whole reply, with its thinking in the field `reasoning`."""
    choice = {
        "index": 0,
        "message": _message(reply, reasoning),
        "logprobs": None,
        "finish_reason": FINISH[reply.stop_reason],
    }
    return {
        **head(reply, "chat.completion"),
        "choices": [choice],
        **shown_usage(reply),
    }


def head(reply: Reply, kind: str) -> JsonObject:
    """Return the members of a reply, or of a chunk of it, that stand before the choices."""
    return {
        "id": reply.id,
        "object": kind,
        "created": reply.created,
        "model": reply.model,
        "system_fingerprint": FINGERPRINT,
    }


def _message(reply: Reply, reasoning: str) -> JsonObject:
    texts = [block["text"] for block in reply.blocks if block["type"] == "text"]
    thoughts = [block["thinking"] for block in reply.blocks if block["type"] == "thinking"]
    calls: list[Json] = [
        {**tool_call(reply, index), "function": function(reply, index)} for index in reply.inputs
    ]
    message: JsonObject = {
        "role": "assistant",
        "content": "".join(texts) if texts else None,
        "refusal": None,
    }
    if thoughts:
        message[reasoning] = "".join(thoughts)
    if calls:
        message["tool_calls"] = calls
    return message


def tool_call(reply: Reply, index: int) -> JsonObject:
    """Return a tool call without its function; `index` is that of its block."""
    block = reply.blocks[index]
    named = {"id": block["id"]} if "id" in block else {}
    extra = reply.extra if index == next(iter(reply.inputs)) else {}
    return {**named, "type": "function", **extra}


def function(reply: Reply, index: int) -> JsonObject:
    """Return the name and the arguments of a tool call."""
    return {"name": reply.blocks[index]["name"], "arguments": reply.inputs[index]}


def shown_usage(reply: Reply) -> JsonObject:
    """Return the member `usage` as the scenario wants it: true, zero, or not there."""
    counts = usage(reply)
    zero = dict.fromkeys(("prompt_tokens", "completion_tokens", "total_tokens"), 0)
    return {} if reply.usage == "none" else {"usage": zero if reply.usage == "zero" else counts}


def usage(reply: Reply) -> JsonObject:
    """Return the tokens of the prompt and of the reply."""
    prompt = reply.share.read + reply.share.fresh
    return {
        "prompt_tokens": prompt,
        "completion_tokens": reply.tokens,
        "total_tokens": prompt + reply.tokens,
        "prompt_tokens_details": {"cached_tokens": reply.share.read, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": reply.thinking_tokens,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }
