"""The parts of a reply in the order in which a stream sends them, with the scenario's faults."""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import ClassVar, Literal

from efrit_budget.demo.refusals import status_of
from efrit_budget.demo.replies import Reply
from efrit_budget.demo.scenario import Entry
from efrit_budget.errors import JsonObject

WORD = re.compile(r"\s*\S+\s*|\s+")
"""A word with the blanks around it."""
INPUT_PIECE = 24
"""The characters of a tool's input in one event, which may cut a word or an escape."""
DONE = b"data: [DONE]\n\n"
COMMENT = b": processing\n\n"
CUT_AFTER = 40
"""The bytes of the last event of a stream that is cut."""


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


@dataclass(frozen=True)
class Part:
    """The beginning, a piece or the end of a block, or a fault."""

    kind: Literal["begin", "piece", "end", "malformed", "error", "cut"]
    index: int
    text: str = ""


class Stream(ABC):
    """Writes a reply as server-sent events."""

    malformed: ClassVar[bytes]
    """An event whose data is no JSON."""
    error_messages: ClassVar[Mapping[int, str]]
    """The usual message of an error, by status."""
    error_name: ClassVar[str | None]
    """The name of an error event, None where events have no names."""
    says_done: ClassVar[bool]
    """True if a stream of this API ends in `[DONE]`."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply

    def events(self) -> Iterator[Event]:
        """Yield every event of the reply; the caller stops after an event that `is_last`."""
        entry = self.reply.entry
        yield from self.start()
        for part in parts(self.reply):
            if entry.comments:
                yield Event(COMMENT)
            yield from self._part(part)
        yield from self.end()
        if self.says_done if entry.done is None else entry.done:
            yield Event(DONE)

    def _part(self, part: Part) -> Iterator[Event]:
        if part.kind in {"begin", "end"}:
            yield from self.edge(part)
        elif part.kind == "piece":
            yield self.piece(part.index, part.text)
        elif part.kind == "malformed":
            yield Event(self.malformed)
        elif part.kind == "error":
            yield Event(self._error_event(), is_last=True)
        else:
            yield self.piece(part.index, part.text[: max(1, len(part.text) // 2)])
            whole = self.piece(part.index, part.text).data
            yield Event(whole[:CUT_AFTER], is_last=True, drops=True)

    @abstractmethod
    def start(self) -> Iterator[Event]:
        """Yield the events before the first block."""

    @abstractmethod
    def edge(self, part: Part) -> Iterator[Event]:
        """Yield the events that begin or end a block."""

    @abstractmethod
    def piece(self, index: int, text: str) -> Event:
        """Return the event that carries a piece of a block."""

    @abstractmethod
    def end(self) -> Iterator[Event]:
        """Yield the events after the last block."""

    @abstractmethod
    def error(self, kind: str, message: str) -> JsonObject:
        """Return the data of an error within the stream."""

    def _error_event(self) -> bytes:
        """Return the event for the scenario's error."""
        entry = self.reply.entry
        kind = str(entry.error_event)
        message = entry.message or self.error_messages.get(status_of(kind), kind)
        data = json.dumps(self.error(kind, message), ensure_ascii=False)
        return encode_data(data if entry.error_body is None else entry.error_body, self.error_name)


def parts(reply: Reply) -> Iterator[Part]:
    """Yield the parts of all blocks, one block after the other or, if interleaved, in turns."""
    blocks = [list(_block(reply, index, block)) for index, block in enumerate(reply.blocks)]
    if reply.entry.interleaved:
        yield from (part for row in zip_longest(*blocks) for part in row if part is not None)
    else:
        yield from chain.from_iterable(blocks)
    if not reply.blocks and (fault := _last_fault(reply.entry)):
        yield Part(fault, 0)


def _block(reply: Reply, index: int, block: JsonObject) -> Iterator[Part]:
    """Yield the parts of a block, with the scenario's fault in the middle if the block has one."""
    pieces = [Part("piece", index, text) for text in _pieces(reply, index, block)]
    yield Part("begin", index)
    if fault := _fault(reply, block):
        middle = max(1, len(pieces) // 2)
        yield from pieces[:middle]
        yield Part(fault, index, pieces[middle % len(pieces)].text if pieces else "")
        pieces = pieces[middle:]
    yield from pieces
    yield Part("end", index)


def _pieces(reply: Reply, index: int, block: JsonObject) -> list[str]:
    """Return the pieces of a block's text, or of a tool's input."""
    if block["type"] == "text" and reply.entry.big_event is not None:
        return [block["text"]]
    if block["type"] == "tool_use" and reply.entry.complete_input:
        return []
    if block["type"] != "tool_use":
        return WORD.findall(block[block["type"]])
    text = reply.inputs[index]
    return [text[at : at + INPUT_PIECE] for at in range(0, len(text), INPUT_PIECE)]


def _fault(reply: Reply, block: JsonObject) -> Literal["malformed", "error", "cut"] | None:
    """Return the fault that the scenario puts into this block, or None."""
    entry = reply.entry
    if entry.cut is not None:
        kind = "text" if entry.cut == "text" else "tool_use"
        first = next((one for one in reply.blocks if one["type"] == kind), None)
        return "cut" if block is first else None
    return _last_fault(entry) if block is reply.blocks[-1] else None


def _last_fault(entry: Entry) -> Literal["malformed", "error"] | None:
    """Return the fault that the scenario puts into the last block, or into a reply without any."""
    return "error" if entry.error_event else "malformed" if entry.malformed else None


def encode_event(body: JsonObject, name: str | None = None) -> bytes:
    """Return a server-sent event with this JSON, and with a name if the API names its events."""
    return encode_data(json.dumps(body, ensure_ascii=False), name)


def encode_data(data: str, name: str | None = None) -> bytes:
    """Return a server-sent event with this data, be it JSON or not."""
    lines = [f"data: {line}" for line in data.split("\n")]
    return "\n".join([*([f"event: {name}"] if name else []), *lines, "", ""]).encode()
