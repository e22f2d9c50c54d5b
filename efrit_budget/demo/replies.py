"""Build a reply from a scenario step: blocks, signatures and tokens."""

import json
import secrets
import string
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from efrit_budget.budget.models import Model
from efrit_budget.demo.cache import CachedPrompt, Share
from efrit_budget.demo.conversation import ParsedRequest
from efrit_budget.demo.placeholders import Filling, last_results
from efrit_budget.demo.refusals import ApiError
from efrit_budget.demo.scenario import Entry, ScriptedCall, Step
from efrit_budget.demo.usage import Meter
from efrit_budget.errors import Json, JsonObject

ALPHABET = string.ascii_letters + string.digits


@dataclass(frozen=True)
class Ids:
    """The form of a API's ids: what they begin with, and the random characters behind it."""

    reply: str
    call: str
    length: int

    def new_reply(self) -> str:
        """Return an id for a reply."""
        return new_id(self.reply, self.length)

    def new_call(self) -> str:
        """Return an id for a tool use."""
        return new_id(self.call, self.length)


def new_id(prefix: str, length: int = 22) -> str:
    """Return a prefix with so many random characters behind it."""
    return prefix + "".join(secrets.choice(ALPHABET) for _ in range(length))


@dataclass
class Reply:
    """The reply to a request, with blocks in the form of the Messages API."""

    id: str
    model: str
    entry: Entry
    prompt: CachedPrompt
    request_id: str = ""
    """The id of the request, which errors within a stream name."""
    created: int = field(default_factory=lambda: int(time.time()))
    blocks: list[JsonObject] = field(default_factory=list)
    inputs: dict[int, str] = field(default_factory=dict)
    """The text of each tool's input, by the index of its block."""
    stop_reason: str = "end_turn"
    tokens: int = 1
    thinking_tokens: int = 0
    share: Share = field(default_factory=Share)
    usage: Literal["none", "zero", "finish", "end"] = "end"
    """Where a stream has the usage, and whether it is true."""
    extra: JsonObject = field(default_factory=dict)
    """Further members that the API adds: to the message, or to its first tool call."""


@dataclass(frozen=True)
class Writer:
    """Builds replies from steps, with signed thinking and counted tokens."""

    meter: Meter
    ids: Ids
    sign: Callable[[str, int], str] | None
    """Returns the signature of thinking, given its visible text and its tokens."""
    model: Model

    def reply(self, step: Step, conversation: ParsedRequest, prompt: CachedPrompt) -> Reply:
        """Return the reply of this step to this request."""
        entry, filling = step.entry, Filling(step.round, last_results(conversation))
        reply = Reply(self.ids.new_reply(), conversation.model, entry, prompt)
        if entry.thinking and _thinks(conversation):
            self._think(reply, filling.text(entry.thinking), conversation)
        if entry.text:
            text = filling.text(entry.text)
            reply.blocks.append({"type": "text", "text": text})
            reply.tokens += self.meter.text(text)
        for call in entry.tool:
            self._use(reply, call, filling)
        reply.stop_reason = entry.stop_reason or ("tool_use" if entry.tool else "end_turn")
        self._fit(reply, conversation.max_tokens or self.model.max_output)
        if entry.big_event is not None:
            _enlarge(reply, entry.big_event)
        return reply

    def _fit(self, reply: Reply, limit: int) -> None:
        """Cut a reply that is longer than its limit, or than what the window has left for it."""
        room = self.model.window - reply.prompt.tokens
        if reply.tokens > min(limit, room):
            _cut_to(reply, min(limit, room), self.meter)
            is_full = room < limit
            reply.stop_reason = "model_context_window_exceeded" if is_full else "max_tokens"

    def _think(self, reply: Reply, thought: str, conversation: ParsedRequest) -> None:
        """Add a thinking block, signed and counted, with its text or an empty text."""
        display = conversation.thinking.get("display") or "omitted"
        text = "" if display == "omitted" else thought
        tokens = self.meter.text(thought)
        signature = self.sign(text, tokens) if self.sign else ""
        reply.blocks.append({"type": "thinking", "thinking": text, "signature": signature})
        reply.thinking_tokens += tokens
        reply.tokens += tokens

    def _use(self, reply: Reply, call: ScriptedCall, filling: Filling) -> None:
        """Add a tool use; if its `input_json` is not JSON, stream it, but leave the input empty."""
        if call.input_json is None:
            tool_input = filling.input(call)
            text = json.dumps(tool_input, ensure_ascii=False)
        else:
            text = filling.text(call.input_json)
            try:
                tool_input = json.loads(text)
            except ValueError:
                tool_input = {}
        given = reply.entry.ids
        use_id = given[len(reply.inputs) % len(given)] if given else self.ids.new_call()
        block = {"type": "tool_use", "id": use_id, "name": call.name, "input": tool_input}
        if reply.entry.no_ids:
            del block["id"]
        reply.inputs[len(reply.blocks)] = text
        reply.blocks.append(block)
        reply.tokens += self.meter.use(call.name, text)


def _thinks(conversation: ParsedRequest) -> bool:
    """Return whether the request's thinking parameter lets the model think in this turn."""
    kind = conversation.thinking.get("type", "adaptive")
    if kind == "between_tools":
        return bool(conversation.turns[-1].of_type("tool_result"))
    return bool(kind != "disabled")


def _cut_to(reply: Reply, most: int, meter: Meter) -> None:
    """Cut a reply of more than `most` tokens; its last block may be cut in the middle."""
    blocks, remaining = [], most - reply.thinking_tokens - 1
    for index, block in enumerate(reply.blocks):
        cost = 0 if block["type"] == "thinking" else meter.block(block)
        if cost <= remaining:
            blocks.append(block)
        elif block["type"] == "text" and remaining > 0:
            blocks.append(
                {**block, "text": block["text"][: len(block["text"]) * remaining // cost + 1]}
            )
        elif block["type"] == "tool_use" and remaining > 0:
            text = reply.inputs[index]
            reply.inputs[index] = text[: max(1, len(text) * remaining // cost)]
            blocks.append({**block, "input": {}})
        remaining -= cost
    reply.blocks, reply.tokens = blocks, most
    reply.inputs = {at: text for at, text in reply.inputs.items() if at < len(blocks)}


def _enlarge(reply: Reply, size: int) -> None:
    """Repeat the reply's text up to a size; what is added counts no tokens."""
    for block in reply.blocks:
        if block["type"] == "text":
            block["text"] = (block["text"] * (size // len(block["text"]) + 1))[:size]


def check_expectation(entry: Entry, body: JsonObject) -> None:
    """Raise unless the request contains the text that the scenario expects, if any."""
    expected = entry.expect_contains
    if expected is None or any(expected in text for text in _texts(body)):
        return
    raise ApiError(f"the scenario expects a request that contains {expected!r}, and this does not")


def _texts(value: Json) -> list[str]:
    """Return every string in a value, except the names of members."""
    if isinstance(value, str):
        return [value]
    inner = list(value.values()) if isinstance(value, dict) else value
    return [text for one in inner for text in _texts(one)] if isinstance(inner, list) else []
