"""The replies of tool calls, from the envelopes of the sidecar."""

from collections.abc import Sequence
from typing import Any

from mcp_types import CallToolResult, ContentBlock, ImageContent, TextContent

from efrit_budget.errors import JsonObject

META_PREFIX = "efrit-budget/"
"""The beginning of the names of our members of `_meta`."""
PAGE_FACTS = ("total", "returned", "continuation_token")


def reply_of(
    envelope: JsonObject, session_id: str, *, notes: Sequence[str] = (), structured: bool = False
) -> CallToolResult:
    """Return the reply for an envelope, with the notes in blocks before its text.

    The facts for programs are in `_meta`; if `structured`, also in the structured content, which
    many clients then show the model in place of the text.
    """
    facts = _facts(envelope, session_id)
    blocks = envelope.get("content") or [{"type": "text", "text": envelope["text"]}]
    return CallToolResult(
        content=[*map(_text, notes), *map(_block, blocks)],
        structured_content=facts if structured else None,
        is_error=envelope["status"] != "success",
        _meta={f"{META_PREFIX}{name}": value for name, value in facts.items()},
    )


def problem(message: str) -> CallToolResult:
    """Return the reply to a call that did not run, for a reason that the model can act on."""
    return CallToolResult(content=[_text(message)], is_error=True)


def _facts(envelope: JsonObject, session_id: str) -> JsonObject:
    names = ("status", "handle", "tokens")
    facts: JsonObject = {"session": session_id} | {name: envelope[name] for name in names}
    data = envelope["data"]
    return facts | {name: data[name] for name in PAGE_FACTS if name in data}


def _text(text: str) -> TextContent:
    return TextContent(type="text", text=text)


def _block(block: JsonObject) -> ContentBlock:
    """Return a content block of the Messages API in the form of MCP."""
    if block["type"] == "text":
        return _text(block["text"])
    source: dict[str, Any] = block["source"]
    return ImageContent(type="image", data=source["data"], mime_type=source["media_type"])
