"""Write a reply as the events of the Messages API."""

from collections.abc import Iterator

from efrit_budget.demo.messages.errors import MESSAGES, error_body
from efrit_budget.demo.messages.reply import shown_usage, whole
from efrit_budget.demo.stream import Event, Part, Stream, encode_event
from efrit_budget.errors import Json, JsonObject

BLANK: dict[str, JsonObject] = {
    "text": {"text": ""},
    "thinking": {"thinking": "", "signature": ""},
    "tool_use": {"input": {}},
}
"""The members of a block that its start event has empty, by type."""
DELTAS = {
    "text": ("text_delta", "text"),
    "thinking": ("thinking_delta", "thinking"),
    "tool_use": ("input_json_delta", "partial_json"),
}
"""The type of a block's deltas, and the member that holds the piece, by the block's type."""


class MessagesStream(Stream):
    """Writes a reply as events, each with its name."""

    malformed = b'event: content_block_delta\ndata: {"type": "content_block_delta", "ind\n\n'
    error_messages = MESSAGES
    error_name = "error"
    says_done = False

    def start(self) -> Iterator[Event]:
        """Yield the message without content and stop reason."""
        nothing: JsonObject = {"content": [], "stop_reason": None, "stop_details": None}
        begun = {**whole(self.reply), **nothing, **shown_usage(self.reply, is_final=False)}
        yield _event("message_start", message=begun)

    def edge(self, part: Part) -> Iterator[Event]:
        """Yield the start or the stop of a block."""
        yield from self._start(part.index) if part.kind == "begin" else self._stop(part.index)

    def _start(self, index: int) -> Iterator[Event]:
        """Yield the block without its content, then a ping behind the first block."""
        block = self.reply.blocks[index]
        is_use, is_whole = block["type"] == "tool_use", self.reply.entry.complete_input
        begun = block if is_use and is_whole else {**block, **BLANK[block["type"]]}
        yield _event("content_block_start", index=index, content_block=begun)
        if index == 0:
            yield _event("ping")
        if is_use and not is_whole:
            yield self.piece(index, "")

    def piece(self, index: int, text: str) -> Event:
        """Return a delta of a block."""
        kind, member = DELTAS[self.reply.blocks[index]["type"]]
        return _delta(index, {"type": kind, member: text})

    def _stop(self, index: int) -> Iterator[Event]:
        """Yield the signature of thinking, then the end of the block."""
        block = self.reply.blocks[index]
        if block["type"] == "thinking":
            yield _delta(index, {"type": "signature_delta", "signature": block["signature"]})
        yield _event("content_block_stop", index=index)

    def end(self) -> Iterator[Event]:
        """Yield the stop reason and the usage, then the end of the message."""
        final = whole(self.reply)
        delta = {name: final[name] for name in ("stop_reason", "stop_sequence", "stop_details")}
        shown = shown_usage(self.reply)
        shown.get("usage", {}).pop("cache_creation", None)
        yield _event("message_delta", delta=delta, **shown)
        yield _event("message_stop")

    def error(self, kind: str, message: str) -> JsonObject:
        """Return the data of an error within the stream."""
        return error_body(kind, message, self.reply.request_id)


def _delta(index: int, piece: JsonObject) -> Event:
    return Event(_event("content_block_delta", index=index, delta=piece).data, is_piece=True)


def _event(name: str, **members: Json) -> Event:
    return Event(encode_event({"type": name, **members}, name))
