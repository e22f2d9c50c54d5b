"""Build a reply from a scenario step: blocks, signatures and usage."""

import json
import secrets
import string
from dataclasses import dataclass, field

from efrit_budget.demo.binding import Binder, Checked
from efrit_budget.demo.conversation import ParsedRequest
from efrit_budget.demo.placeholders import Filling, last_results
from efrit_budget.demo.refusals import ApiError
from efrit_budget.demo.scenario import Entry, ScriptedCall, Step
from efrit_budget.demo.usage import Meter
from efrit_budget.errors import Json, JsonObject

ALPHABET = string.ascii_letters + string.digits


@dataclass
class Reply:
    """The reply to a request."""

    id: str
    model: str
    entry: Entry
    blocks: list[JsonObject] = field(default_factory=list)
    inputs: dict[str, str] = field(default_factory=dict)
    """The text of each tool's input, by the id of its use."""
    stop_reason: str = "end_turn"
    tokens: int = 1
    thinking_tokens: int = 0
    usage: JsonObject = field(default_factory=dict)
    extra: JsonObject = field(default_factory=dict)
    """Further members of the message: diagnostics, input transformations."""

    def message(self) -> JsonObject:
        """Return the whole reply."""
        stop_details = None
        if self.stop_reason == "refusal":
            stop_details = {"type": "refusal", "category": None, "explanation": None}
        return {
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": self.blocks,
            "stop_reason": self.stop_reason,
            "stop_sequence": None,
            "stop_details": stop_details,
            "usage": self.final_usage(),
            **self.extra,
        }

    def final_usage(self) -> JsonObject:
        """Return the usage of the prompt and of the reply."""
        return {
            **self.usage,
            "output_tokens": self.tokens,
            "output_tokens_details": {"thinking_tokens": self.thinking_tokens},
        }


@dataclass(frozen=True)
class Writer:
    """Builds replies from steps, with signed thinking and counted tokens."""

    binder: Binder
    meter: Meter

    def reply(self, step: Step, conversation: ParsedRequest, checked: Checked) -> Reply:
        """Return the reply of this step to this request."""
        entry, filling = step.entry, Filling(step.round, last_results(conversation))
        reply = Reply(new_id("msg"), conversation.model, entry)
        if entry.thinking and _thinks(conversation):
            self._think(reply, filling.text(entry.thinking), conversation, checked)
        if entry.text:
            text = filling.text(entry.text)
            reply.blocks.append({"type": "text", "text": text})
            reply.tokens += self.meter.text(text)
        for call in entry.tool:
            self._use(reply, call, filling)
        reply.stop_reason = entry.stop_reason or ("tool_use" if entry.tool else "end_turn")
        _cut_to(reply, conversation.body["max_tokens"], self.meter)
        return reply

    def _think(
        self, reply: Reply, thought: str, conversation: ParsedRequest, checked: Checked
    ) -> None:
        """Add a thinking block, signed and counted, with its text or an empty text."""
        display = conversation.thinking.get("display") or "omitted"
        text = "" if display == "omitted" else thought
        checked.past.enter("assistant")
        tokens = self.meter.text(thought)
        signature = self.binder.sign(checked.past.digest(), checked.previous, text, tokens)
        reply.blocks.append({"type": "thinking", "thinking": text, "signature": signature})
        reply.thinking_tokens += tokens
        reply.tokens += tokens

    def _use(self, reply: Reply, call: ScriptedCall, filling: Filling) -> None:
        """Add a tool use; if its `input_json` is not JSON, stream it, but leave the input empty."""
        use_id = new_id("toolu")
        if call.input_json is None:
            tool_input = filling.input(call)
            text = json.dumps(tool_input, ensure_ascii=False)
        else:
            text = filling.text(call.input_json)
            try:
                tool_input = json.loads(text)
            except ValueError:
                tool_input = {}
        block = {"type": "tool_use", "id": use_id, "name": call.name, "input": tool_input}
        reply.blocks.append(block)
        reply.inputs[use_id] = text
        reply.tokens += self.meter.use(call.name, text)


def _thinks(conversation: ParsedRequest) -> bool:
    """Return whether the request's thinking parameter lets the model think in this turn."""
    kind = conversation.thinking.get("type", "adaptive")
    if kind == "between_tools":
        return bool(conversation.turns[-1].of_type("tool_result"))
    return bool(kind != "disabled")


def _cut_to(reply: Reply, most: int, meter: Meter) -> None:
    """Cut a reply of more than `most` tokens; its last block may be cut in the middle."""
    if reply.tokens <= most:
        return
    blocks, remaining = [], most - reply.thinking_tokens - 1
    for block in reply.blocks:
        cost = 0 if block["type"] == "thinking" else meter.block(block)
        if cost <= remaining:
            blocks.append(block)
        elif block["type"] == "text" and remaining > 0:
            blocks.append(
                {**block, "text": block["text"][: len(block["text"]) * remaining // cost + 1]}
            )
        elif block["type"] == "tool_use" and remaining > 0:
            text = reply.inputs[block["id"]]
            reply.inputs[block["id"]] = text[: max(1, len(text) * remaining // cost)]
            blocks.append({**block, "input": {}})
        remaining -= cost
    reply.blocks, reply.tokens, reply.stop_reason = blocks, most, "max_tokens"


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


def new_id(prefix: str) -> str:
    """Return an id in the API's form."""
    return f"{prefix}_01" + "".join(secrets.choice(ALPHABET) for _ in range(22))
