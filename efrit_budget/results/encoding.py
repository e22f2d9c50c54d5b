"""Encode bodies as bytes and decode them."""

import json
import zlib
from array import array

from efrit_budget.results.body import Body, Source

COMPRESSION_LEVEL = 1
OFFSETS = "I"
"""The type of the array that offsets are stored as; a listing may have a hundred thousand."""


def packed_text(body: Body) -> bytes:
    """Return the text of a body encoded for storage."""
    return zlib.compress(body.text.encode(), COMPRESSION_LEVEL)


def packed_marks(body: Body) -> bytes | None:
    """Return the other fields of a body encoded for storage, or None if all have their defaults."""
    if body == Body(body.text):
        return None
    facts = {
        "noun": body.noun,
        "items": len(body.items),
        "data": body.data,
        "item_data": body.item_data,
        "tree": body.tree,
        "numbered": body.numbered,
        "total": body.total,
        "hint": body.hint,
        "most": body.most,
        "opening": body.opening,
        "sources": [(source.path, source.modified_ns, source.size) for source in body.sources],
        "more": body.more,
        "position": body.position,
        "content": body.content,
        "content_tokens": body.content_tokens,
    }
    offsets = array(OFFSETS, body.items).tobytes() + array(OFFSETS, body.headers).tobytes()
    return zlib.compress(json.dumps(facts).encode() + b"\n" + offsets, COMPRESSION_LEVEL)


def unpacked(text: bytes, marks: bytes | None) -> Body:
    """Return the body that was encoded as this text and these other fields."""
    whole = zlib.decompress(text).decode()
    if marks is None:
        return Body(whole)
    written, _, packed = zlib.decompress(marks).partition(b"\n")
    facts = json.loads(written)
    offsets = array(OFFSETS)
    offsets.frombytes(packed)
    return Body(
        text=whole,
        noun=facts["noun"],
        items=tuple(offsets[: facts["items"]]),
        headers=tuple(offsets[facts["items"] :]),
        data=facts["data"],
        item_data=tuple(facts["item_data"]),
        tree=facts["tree"],
        numbered=facts["numbered"],
        total=facts["total"],
        hint=facts.get("hint", ""),
        most=facts["most"],
        opening=facts.get("opening", 0),
        sources=tuple(Source(*source) for source in facts["sources"]),
        more=facts["more"],
        position=facts["position"],
        content=tuple(facts["content"]),
        content_tokens=facts["content_tokens"],
    )
