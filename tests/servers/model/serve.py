"""Serve the weights of a small model over Chat Completions; two arguments: WEIGHTS RECORD.

It runs in an environment of its own, see .ci/servers. Tools stand in the prompt, and calls are read
from free text. A model's name has its temperature and seed: small:0.8:7; if `call` follows, each
reply begins with a call, as servers have it begin whose tool choice is `required`.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from llama_cpp import Llama

from tests.servers.model.spoken import END, MARK, Call, Spoken

WINDOW = 8192
FORCED = f'{MARK}{{"name": "'
"""The beginning of a reply that has to be a call."""
PIECE = 16
"""The characters of a call's arguments that one event has."""
TOOLS = f"""

# Tools

You may call functions to help with the task. Their signatures are within <tools></tools>:
<tools>
{{}}
</tools>

For each function call return a JSON object with its name and arguments within {MARK}{END}:
{MARK}{{{{"name": "read_file", "arguments": {{{{"path": "README.md"}}}}}}}}{END}"""
Json = dict[str, Any]


def prompt_of(request: Json) -> str:
    """Return the text that the model goes on with, as its template has it."""
    tools = "\n".join(json.dumps(tool["function"]) for tool in request.get("tools", []))
    parts: list[str] = []
    for message in request["messages"]:
        text = text_of(message)
        if message["role"] == "system" and not parts and tools:
            text += TOOLS.format(tools)
        parts.append(f"<|im_start|>{message['role']}\n{text}<|im_end|>\n")
    return "".join(parts) + "<|im_start|>assistant\n" + start_of(request)


def start_of(request: Json) -> str:
    """Return what the model's reply has to begin with."""
    return FORCED if request["model"].endswith(":call") else ""


def text_of(message: Json) -> str:
    """Return the text of a message, with its calls as the model is to write them."""
    content = message.get("content") or ""
    if isinstance(content, list):
        content = "\n".join(part.get("text", "") for part in content)
    for call in message.get("tool_calls", []):
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        content += f'{MARK}{{"name": "{name}", "arguments": {arguments}}}{END}'
    return str(content)


class Model:
    """The loaded model; it answers one request at a time."""

    def __init__(self, weights: str, record: Path) -> None:
        # With a second thread it is slow where another program runs on the second core.
        self._llama = Llama(weights, n_ctx=WINDOW, n_threads=1, n_threads_batch=1, verbose=False)
        self._lock = threading.Lock()
        self._record = record

    def note(self, line: Json) -> None:
        """Add a line to the record."""
        with self._record.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def tokens(self, request: Json) -> list[int]:
        """Return the prompt of a request."""
        found: list[int] = self._llama.tokenize(
            prompt_of(request).encode(), add_bos=False, special=True
        )
        return found

    def reply(self, request: Json, prompt: list[int]) -> Iterator[Json]:
        """Yield the deltas of a reply, then the finish reason and the usage."""
        spoken, said = Spoken(), [start_of(request)]
        spoken.hear(said[0])
        _, temperature, seed, *_ = request["model"].split(":")
        most = min(request.get("max_tokens") or WINDOW, WINDOW - len(prompt))
        with self._lock:
            pieces = self._llama.create_completion(
                prompt,
                max_tokens=most,
                temperature=float(temperature),
                seed=int(seed),
                stop=["<|im_end|>"],
                stream=True,
            )
            reason = None
            for piece in pieces:
                choice = piece["choices"][0]
                said.append(choice["text"])
                reason = choice["finish_reason"] or reason
                if text := spoken.hear(choice["text"]):
                    yield {"delta": {"content": text}}
        text, calls = spoken.finish()
        if text:
            yield {"delta": {"content": text}}
        for index, call in enumerate(calls):
            yield from call_deltas(index, call)
        usage = {"prompt_tokens": len(prompt), "completion_tokens": len(said) - 1}
        self.note({**usage, "said": "".join(said)})
        yield {"finish_reason": "tool_calls" if calls else reason or "stop", "usage": usage}


def call_deltas(index: int, call: Call) -> Iterator[Json]:
    """Yield the deltas of a call: its name, then its arguments in pieces."""
    function: Json = {"name": call.name, "arguments": ""}
    first = {"index": index, "id": f"call_{index}", "type": "function", "function": function}
    yield {"delta": {"tool_calls": [first]}}
    for start in range(0, len(call.arguments), PIECE):
        function = {"arguments": call.arguments[start : start + PIECE]}
        yield {"delta": {"tool_calls": [{"index": index, "function": function}]}}


class Handler(BaseHTTPRequestHandler):
    """Answers requests for replies; all of them are streams."""

    model: Model

    def do_POST(self) -> None:
        """Stream a reply, or refuse a prompt that is longer than the window."""
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        prompt = self.model.tokens(request)
        if len(prompt) >= WINDOW:
            said = f"Requested tokens ({len(prompt)}) exceed context window of {WINDOW}"
            self.model.note({"prompt_tokens": 0, "completion_tokens": 0, "refused": said})
            self._begin(400, "application/json")
            self.wfile.write(json.dumps({"error": {"message": said}}).encode())
            return
        self._begin(200, "text/event-stream")
        for part in self.model.reply(request, prompt):
            usage = part.pop("usage", None)
            self._send({"choices": [{"index": 0, "delta": {}, **part}]})
            if usage:
                self._send({"choices": [], "usage": usage})
        self.wfile.write(b"data: [DONE]\n\n")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Print nothing; the record has every reply."""

    def _begin(self, status: int, kind: str) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.end_headers()

    def _send(self, chunk: Json) -> None:
        self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())


if __name__ == "__main__":
    Handler.model = Model(sys.argv[1], Path(sys.argv[2]))
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        print(f"http://127.0.0.1:{server.server_port}", flush=True)
        server.serve_forever()
