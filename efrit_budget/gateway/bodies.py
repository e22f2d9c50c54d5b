"""What other servers reply, in the form in which it is recorded."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from efrit_budget.errors import JsonObject
from efrit_budget.gateway.json_items import item_offsets

BASE64_SHARE = 3 / 4
"""The bytes of a character of Base64."""


@dataclass(frozen=True)
class Recorded:
    """The result of a call that is to be recorded."""

    text: str
    is_error: bool = False
    items: Sequence[int] = ()
    images: Sequence[str] = ()
    own_lines: Sequence[int] = ()
    ending: str | None = None
    """`denied` if the call was not run."""

    def params(self) -> JsonObject:
        """Return the params of `tools/record` for this result."""
        return {
            "status": "error" if self.is_error else "success",
            "text": self.text,
            "items": list(self.items),
            "images": list(self.images),
            "own_lines": list(self.own_lines),
            "ending": self.ending,
            "message": self.text if self.own_lines else None,
        }


def own_failure(line: str, found: str = "") -> Recorded:
    """Return the result of a call that failed: a line of ours, and the text that was found."""
    text = f"{line}\n{found}" if found else line
    return Recorded(text, is_error=True, own_lines=(0,))


def recorded(result: CallToolResult) -> Recorded:
    """Return a reply as it is recorded.

    Texts stand below each other, each an item if there are several; the items of a single text are
    the elements of the list that it is. Structured content is added unless the texts say the same.
    """
    texts = [_text(block) for block in result.content if not isinstance(block, ImageContent)]
    images = [block.data for block in result.content if isinstance(block, ImageContent)]
    structured = result.structured_content
    if structured is not None and not _says_the_same(texts, structured):
        texts.append(json.dumps(structured, ensure_ascii=False))
    if len(texts) == 1:
        items: Sequence[int] = item_offsets(texts[0])
    else:
        items = _starts(texts)
    return Recorded("\n".join(texts), result.is_error, items, images)


def _starts(texts: Sequence[str]) -> list[int]:
    """Return where each text begins when they stand below each other; empty ones are no items."""
    starts, at = [], 0
    for text in texts:
        if text:
            starts.append(at)
        at += len(text) + 1
    return starts


def _says_the_same(texts: Sequence[str], structured: Any) -> bool:
    """Return whether the texts are the structured content as JSON, or as its only member."""
    values = structured
    if isinstance(structured, dict) and len(structured) == 1:
        (values,) = structured.values()
    if values == "\n".join(texts):
        return True
    parsed = [_parsed(text) for text in texts]
    if len(parsed) == 1 and parsed[0] in (structured, values):
        return True
    pairs = zip(texts, parsed, strict=True)
    either = [[text, value] for text, value in pairs]
    return (
        isinstance(values, list)
        and len(values) == len(either)
        and all(value in forms for value, forms in zip(values, either, strict=True))
    )


def _parsed(text: str) -> Any:
    """Return the value of a JSON text, or the text itself if it is not JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _text(block: ContentBlock) -> str:
    """Return a block as text; of what is no text, its kind and its size."""
    match block:
        case TextContent():
            return block.text
        case ResourceLink():
            described = f": {block.description}" if block.description else ""
            return f"[resource {block.uri} {block.name}{described}]"
        case EmbeddedResource(resource=TextResourceContents() as resource):
            return resource.text
        case EmbeddedResource(resource=BlobResourceContents() as resource):
            return _unseen(f"resource {resource.uri}", resource.mime_type, resource.blob)
        case AudioContent():
            return _unseen("audio", block.mime_type, block.data)
    return f"[{block.type}]"


def _unseen(what: str, mime_type: str | None, data: str) -> str:
    size = int(len(data.rstrip("=")) * BASE64_SHARE)
    return f"[{what}, {mime_type or 'of an unknown type'}, {size:,} bytes, not shown]"
