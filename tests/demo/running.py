"""The endpoint on its own port, the official SDK as its client, and plain requests."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anthropic import Anthropic
from openai import OpenAI

from efrit_budget.demo.binding import kept_key
from efrit_budget.demo.endpoint import LOOPBACK, EndpointServer
from efrit_budget.demo.record import Recorder
from efrit_budget.demo.scenario import parse
from efrit_budget.demo.service import Options, Service

MODEL = "claude-sonnet-5-5"
HEADERS = {"x-api-key": "sk-test", "anthropic-version": "2023-06-01"}
Block = dict[str, Any]

TOOL: Block = {
    "name": "read_file",
    "description": "Read a file.",
    "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}},
}


@dataclass(frozen=True)
class Answer:
    """The response to a plain HTTP request."""

    status: int
    headers: dict[str, str]
    body: Any

    @property
    def error(self) -> str:
        """An error's message, in the API's form."""
        assert self.body["type"] == "error", self.body
        assert self.body["request_id"] == self.headers["request-id"]
        return str(self.body["error"]["message"])


@dataclass
class Endpoint:
    """A running endpoint."""

    server: EndpointServer
    record: Path
    clients: list[Anthropic | OpenAI] = field(default_factory=list)

    def client(self, key: str = "sk-test", **options: Any) -> Anthropic:
        """Return the official client, without retries unless `options` allow them."""
        made = Anthropic(base_url=self.server.url, api_key=key, **{"max_retries": 0, **options})
        self.clients.append(made)
        return made

    def openai(self, key: str = "sk-test", **options: Any) -> OpenAI:
        """Return OpenAI's official client, without retries unless `options` allow them."""
        url = f"{self.server.url}/v1"
        made = OpenAI(base_url=url, api_key=key, **{"max_retries": 0, **options})
        self.clients.append(made)
        return made

    def connection(self) -> http.client.HTTPConnection:
        """Open a plain HTTP connection."""
        return http.client.HTTPConnection(LOOPBACK, self.server.server_address[1], timeout=300)

    def post(
        self, body: Any, path: str = "/v1/messages", *, beta: str = "", **headers: str | None
    ) -> Answer:
        """Post a body; a header that is None is left out."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        sent = {**HEADERS, "anthropic-beta": beta, **named}
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection = self.connection()
        try:
            present = {name: value for name, value in sent.items() if value}
            connection.request("POST", path, raw, present)
            reply = connection.getresponse()
            text = reply.read()
        finally:
            connection.close()
        given = {name.lower(): value for name, value in reply.getheaders()}
        is_json = given.get("content-type", "").startswith("application/json")
        return Answer(reply.status, given, json.loads(text) if is_json else text.decode())

    def lines(self) -> list[Any]:
        """Return the requests that the endpoint recorded."""
        return [json.loads(line) for line in self.record.read_text(encoding="utf-8").splitlines()]


@contextmanager
def endpoint(
    scenario: str, folder: Path, *, key_file: Path | None = None, **options: Any
) -> Iterator[Endpoint]:
    """Run an endpoint that plays a scenario."""
    record = folder / "record.jsonl"
    service = Service(Options(parse(scenario), kept_key(key_file), **options))
    recorder = Recorder(record)
    with EndpointServer(0, service, recorder) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        running = Endpoint(server, record)
        try:
            yield running
        finally:
            for client in running.clients:
                client.close()
            server.shutdown()
            thread.join()
            recorder.close()


def user(*content: Block | str) -> Block:
    """Return a user message of blocks; strings become text blocks."""
    return {
        "role": "user",
        "content": [text(one) if isinstance(one, str) else one for one in content],
    }


def assistant(*content: Block | str) -> Block:
    """Return an assistant message."""
    return {**user(*content), "role": "assistant"}


def text(said: str) -> Block:
    """Return a text block."""
    return {"type": "text", "text": said}


def use(use_id: str = "toolu_1", name: str = "read_file", **given: Any) -> Block:
    """Return a tool use."""
    return {"type": "tool_use", "id": use_id, "name": name, "input": given}


def result(use_id: str = "toolu_1", content: Any = "done") -> Block:
    """Return a tool result."""
    return {"type": "tool_result", "tool_use_id": use_id, "content": content}


def request(*messages: Block, **others: Any) -> Block:
    """Return a request."""
    return {
        "model": MODEL,
        "max_tokens": 1000,
        "messages": list(messages) or [user("Hello.")],
        **others,
    }
