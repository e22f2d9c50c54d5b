"""Write a reply as server-sent events, with the faults of the scenario."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from efrit_budget.demo.refusals import MESSAGES, error_body, status_of
from efrit_budget.demo.replies import Reply
from efrit_budget.errors import Json, JsonObject

WORD = re.compile(r"\s*\S+\s*|\s+")
"""A word with the blanks around it."""
INPUT_PIECE = 24
"""The characters of a tool's input in one event, which may cut a word or an escape."""


@dataclass(frozen=True)
class Event:
    """The bytes of a server-sent event, and how the stream goes on after it."""

    data: bytes
    is_piece: bool = False
    """True if the event carries a delta: a part of a block's content."""
    is_last: bool = False
    """True if the stream ends early, after this event."""
    drops: bool = False
    """True if the connection is closed after this event, without the stream's end mark."""


def events(reply: Reply, request_id: str) -> Iterator[Event]:
    """Yield every event of a reply; the caller stops after an event that `is_last`."""
    yield _start(reply)
    for index, block in enumerate(reply.blocks):
        yield _event("content_block_start", index=index, content_block=_empty(block))
        if index == 0:
            yield _event("ping")
        yield from _block(reply, index, block, request_id)
        yield _event("content_block_stop", index=index)
    yield from _end(reply)


def _start(reply: Reply) -> Event:
    """Return the `message_start` event: the message without content and stop reason."""
    usage = {**reply.usage, "output_tokens": 1}
    nothing: JsonObject = {"content": [], "stop_reason": None, "stop_details": None}
    return _event("message_start", message={**reply.message(), **nothing, "usage": usage})


def _end(reply: Reply) -> Iterator[Event]:
    message = reply.message()
    delta = {name: message[name] for name in ("stop_reason", "stop_sequence", "stop_details")}
    usage = {name: count for name, count in message["usage"].items() if name != "cache_creation"}
    yield _event("message_delta", delta=delta, usage=usage)
    yield _event("message_stop")


def _empty(block: JsonObject) -> JsonObject:
    """Return a block without its content, as its start event has it."""
    blank: dict[str, JsonObject] = {
        "text": {"text": ""},
        "thinking": {"thinking": "", "signature": ""},
        "tool_use": {"input": {}},
    }
    return {**block, **blank[block["type"]]}


def _block(reply: Reply, index: int, block: JsonObject, request_id: str) -> Iterator[Event]:
    """Yield the events of a block, with the scenario's fault in the middle if the block has one."""
    pieces = list(_pieces(reply, block))
    if fault := _fault(reply, block):
        middle = max(1, len(pieces) // 2)
        yield from (_delta(index, piece) for piece in pieces[:middle])
        yield from _faulty(reply, fault, index, pieces[middle % len(pieces)], request_id)
        pieces = pieces[middle:]
    yield from (_delta(index, piece) for piece in pieces)


def _pieces(reply: Reply, block: JsonObject) -> Iterator[JsonObject]:
    """Yield the deltas of a block."""
    if block["type"] == "thinking":
        for word in WORD.findall(block["thinking"]):
            yield {"type": "thinking_delta", "thinking": word}
        yield {"type": "signature_delta", "signature": block["signature"]}
    elif block["type"] == "text":
        for word in WORD.findall(block["text"]):
            yield {"type": "text_delta", "text": word}
    else:
        text = reply.inputs[block["id"]]
        yield {"type": "input_json_delta", "partial_json": ""}
        for at in range(0, len(text), INPUT_PIECE):
            yield {"type": "input_json_delta", "partial_json": text[at : at + INPUT_PIECE]}


def _fault(reply: Reply, block: JsonObject) -> str | None:
    """Return the fault that the scenario puts into this block, or None."""
    entry = reply.entry
    if entry.cut is not None:
        kind = "text" if entry.cut == "text" else "tool_use"
        first = next((one for one in reply.blocks if one["type"] == kind), None)
        return "cut" if block is first else None
    if block is not reply.blocks[-1]:
        return None
    return "error" if entry.error_event else "malformed" if entry.malformed else None


def _faulty(
    reply: Reply, fault: str, index: int, piece: JsonObject, request_id: str
) -> Iterator[Event]:
    """Yield the events of a fault: an invalid event, an error, or half of the delta `piece`."""
    if fault == "malformed":
        yield Event(b'event: content_block_delta\ndata: {"type": "content_block_delta", "ind\n\n')
    elif fault == "error":
        kind = str(reply.entry.error_event)
        text = reply.entry.message or MESSAGES.get(status_of(kind), kind)
        yield Event(_encode_event("error", error_body(kind, text, request_id)), is_last=True)
    else:
        name = next(name for name in ("text", "partial_json") if name in piece)
        half = {**piece, name: piece[name][: max(1, len(piece[name]) // 2)]}
        yield _delta(index, half)
        yield Event(_delta(index, piece).data[:40], is_last=True, drops=True)


def _delta(index: int, piece: JsonObject) -> Event:
    return Event(_event("content_block_delta", index=index, delta=piece).data, is_piece=True)


def _event(name: str, **members: Json) -> Event:
    return Event(_encode_event(name, {"type": name, **members}))


def _encode_event(name: str, body: JsonObject) -> bytes:
    return f"event: {name}\ndata: {json.dumps(body, ensure_ascii=False)}\n\n".encode()
