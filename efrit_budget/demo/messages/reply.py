"""A whole reply as the Messages API writes it."""

from efrit_budget.demo.replies import Reply
from efrit_budget.errors import Json, JsonObject


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
        **shown_usage(reply),
        **reply.extra,
    }


def shown_usage(reply: Reply, *, is_final: bool = True) -> dict[str, dict[str, Json]]:
    """Return the member `usage` as the scenario wants it: true, zero, or not there.

    Before the end of a stream it has one token of output.
    """
    if reply.usage == "none":
        return {}
    if reply.usage == "zero":
        return {"usage": {"input_tokens": 0, "output_tokens": 0}}
    counts = dict(usage(reply))
    if not is_final:
        del counts["output_tokens_details"]
        counts["output_tokens"] = 1
    return {"usage": counts}


def usage(reply: Reply) -> JsonObject:
    """Return the tokens of the prompt and of the reply."""
    share = reply.share
    return {
        "input_tokens": share.fresh,
        "cache_creation_input_tokens": sum(share.written.values()),
        "cache_read_input_tokens": share.read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": share.written["5m"],
            "ephemeral_1h_input_tokens": share.written["1h"],
        },
        "service_tier": "standard",
        "output_tokens": reply.tokens,
        "output_tokens_details": {"thinking_tokens": reply.thinking_tokens},
    }
