"""A whole reply as the Messages API writes it."""

from efrit_budget.demo.replies import Reply
from efrit_budget.errors import JsonObject


def whole(reply: Reply) -> JsonObject:
    """Return the whole reply."""
    stop_details = None
    if reply.stop_reason == "refusal":
        stop_details = {"type": "refusal", "category": None, "explanation": None}
    return {
        "id": reply.id,
        "type": "message",
        "role": "assistant",
        "model": reply.model,
        "content": reply.blocks,
        "stop_reason": reply.stop_reason,
        "stop_sequence": None,
        "stop_details": stop_details,
        "usage": usage(reply),
        **reply.extra,
    }


def usage(reply: Reply, *, is_final: bool = True) -> JsonObject:
    """Return the usage of the prompt and, if it `is_final`, of the reply."""
    share = reply.share
    prompt: JsonObject = {
        "input_tokens": share.fresh,
        "cache_creation_input_tokens": sum(share.written.values()),
        "cache_read_input_tokens": share.read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": share.written["5m"],
            "ephemeral_1h_input_tokens": share.written["1h"],
        },
        "service_tier": "standard",
    }
    if not is_final:
        return prompt
    return {
        **prompt,
        "output_tokens": reply.tokens,
        "output_tokens_details": {"thinking_tokens": reply.thinking_tokens},
    }
