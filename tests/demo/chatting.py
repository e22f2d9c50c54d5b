"""Requests of Chat Completions, and what comes back for them."""

from __future__ import annotations

import json
from typing import Any

from tests.demo.running import MODEL, TOOL, Answer, Block, Endpoint

PATH = "/v1/chat/completions"
READ_FILE: Block = {
    "type": "function",
    "function": {
        "name": "read_file",
        "description": TOOL["description"],
        "parameters": TOOL["input_schema"],
    },
}
ASKED: Block = {"role": "user", "content": "Read it."}


def chat(*messages: Block, **others: Any) -> Block:
    """Return a request."""
    return {"model": MODEL, "messages": list(messages) or [ASKED], **others}


def said(content: str | None = "Yes.", **others: Any) -> Block:
    """Return a reply of the model."""
    return {"role": "assistant", "content": content, **others}


def call(call_id: str = "call_1", name: str = "read_file", arguments: Any = "{}") -> Block:
    """Return a tool call."""
    function = {"name": name, "arguments": arguments}
    return {"id": call_id, "type": "function", "function": function}


def result(call_id: str = "call_1", content: Any = "done") -> Block:
    """Return the result of a tool call."""
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def post(running: Endpoint, body: Any, **headers: str | None) -> Answer:
    """Post a request, with a key unless `headers` say otherwise."""
    named: dict[str, Any] = {"x_api_key": None, "anthropic_version": None, **headers}
    return running.post(body, PATH, **{"authorization": "Bearer sk-test", **named})


def chunks(answer: Answer) -> list[Any]:
    """Return the chunks of a stream that ends as it should."""
    *data, end, rest = answer.body.split("\n\n")
    assert (end, rest) == ("data: [DONE]", "")
    return [json.loads(line.removeprefix("data: ")) for line in data]


def deltas(answer: Answer) -> list[Any]:
    """Return the deltas of a stream."""
    return [chunk["choices"][0]["delta"] for chunk in chunks(answer) if chunk["choices"]]


def chat_calls(answer: Answer) -> list[Any]:
    """Return the deltas of tool calls of a stream."""
    return [call for delta in deltas(answer) for call in delta.get("tool_calls", [])]
