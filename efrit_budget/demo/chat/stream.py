"""Write a reply as the chunks of Chat Completions."""

from collections.abc import Iterator

from efrit_budget.demo.chat.errors import MESSAGES, error_body
from efrit_budget.demo.chat.reply import FINISH, function, head, shown_usage, tool_call
from efrit_budget.demo.refusals import ApiError, status_of
from efrit_budget.demo.replies import Reply
from efrit_budget.demo.stream import Event, Part, Stream, encode_event
from efrit_budget.errors import Json, JsonObject


class ChatStream(Stream):
    """Writes a reply as chunks, with its thinking in the field `reasoning`."""

    error_messages = MESSAGES
    error_name = None
    says_done = True
    malformed = b'data: {"id": "chatcmpl-", "object": "chat.comp\n\n'

    def __init__(self, reply: Reply, reasoning: str) -> None:
        super().__init__(reply)
        self._reasoning = reasoning
        self._calls = {index: number for number, index in enumerate(reply.inputs)}
        """The index of each tool call, by the index of its block."""

    def start(self) -> Iterator[Event]:
        """Yield a chunk with the role."""
        content = "" if any(block["type"] == "text" for block in self.reply.blocks) else None
        yield Event(self._delta({"role": "assistant", "content": content, "refusal": None}))

    def edge(self, part: Part) -> Iterator[Event]:
        """Yield the id and the name where a tool call begins; other blocks just begin and end."""
        index = part.index
        if part.kind == "begin" and index in self._calls:
            begun = function(self.reply, index)
            if not self.reply.entry.complete_input:
                begun = {**begun, "arguments": ""}
            yield self._call(index, **tool_call(self.reply, index), function=begun)

    def piece(self, index: int, text: str) -> Event:
        """Return a delta of a block."""
        kind = self.reply.blocks[index]["type"]
        if kind == "tool_use":
            return self._call(index, function={"arguments": text})
        name = self._reasoning if kind == "thinking" else "content"
        return Event(self._delta({name: text}), is_piece=True)

    def end(self) -> Iterator[Event]:
        """Yield the finish reason, and the usage with it or behind it."""
        shown = shown_usage(self.reply)
        has_both = self.reply.usage == "finish"
        with_it = shown if has_both else {}
        yield Event(self._delta({}, FINISH[self.reply.stop_reason], **with_it))
        if shown and not has_both:
            yield Event(self._chunk(choices=[], **shown))

    def error(self, kind: str, message: str) -> JsonObject:
        """Return the data of an error within the stream."""
        return error_body(ApiError(message, status=status_of(kind)))

    def _call(self, index: int, **members: Json) -> Event:
        """Return a delta of a tool call."""
        number = {"none": {}, "zero": {"index": 0}, None: {"index": self._calls[index]}}
        call: JsonObject = {**number[self.reply.entry.index], **members}
        return Event(self._delta({"tool_calls": [call]}), is_piece=True)

    def _delta(self, delta: JsonObject, finish_reason: str | None = None, **members: Json) -> bytes:
        """Return a chunk with this delta."""
        choice: JsonObject = {"index": 0, "delta": delta, "logprobs": None}
        choice["finish_reason"] = finish_reason
        empty: JsonObject = {"usage": None} if self.reply.usage in {"end", "zero"} else {}
        return self._chunk(choices=[choice], **{**empty, **members})

    def _chunk(self, **members: Json) -> bytes:
        return encode_event({**head(self.reply, "chat.completion.chunk"), **members})
