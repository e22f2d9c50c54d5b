"""Serve the endpoint over HTTP/1.1 on loopback."""

import json
import re
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from socketserver import TCPServer, ThreadingMixIn
from typing import Final

from efrit_budget.demo.api import Api
from efrit_budget.demo.faults import unstreamable
from efrit_budget.demo.record import Recorder
from efrit_budget.demo.refusals import ApiError
from efrit_budget.demo.replies import Reply, new_id
from efrit_budget.demo.service import Service
from efrit_budget.demo.stream import Event
from efrit_budget.errors import JsonObject

LOOPBACK: Final = "127.0.0.1"
MOST_BYTES = 32 << 20
"""The largest body that the API accepts."""
COUNT = "/v1/messages/count_tokens"
CHAT = "/v1/chat/completions"
PATHS = ("/v1/messages", COUNT, CHAT)
MODELS = "/v1/models"
CHUNK_SIZE = re.compile(rb"[0-9a-fA-F]{1,8}")


class EndpointServer(ThreadingMixIn, TCPServer):
    """An HTTP server with a thread per connection and no name lookups."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, port: int, service: Service, recorder: Recorder) -> None:
        super().__init__((LOOPBACK, port), Handler)
        self.service = service
        self.recorder = recorder

    @property
    def url(self) -> str:
        """The address it listens on."""
        return f"http://{LOOPBACK}:{self.server_address[1]}"

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore a client that hung up; print any other error."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


@dataclass
class Exchange:
    """A request in progress, and the API that it came by."""

    api: Api
    request_id: str = field(default_factory=lambda: new_id("req_01"))
    raw: bytes = b""
    betas: frozenset[str] = frozenset()
    received: float = field(default_factory=time.time)
    first: float | None = None
    """The time at which the first delta of the reply was sent."""
    is_recorded: bool = False


class Handler(BaseHTTPRequestHandler):
    """Reads requests and writes replies."""

    server: EndpointServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        """Answer a request for a message or for a token count."""
        exchange = Exchange(self._api())
        try:
            exchange.raw = self._body()
            self._check_path(PATHS)
            exchange.betas = exchange.api.check_headers(self._headers())
            if self._path() == COUNT:
                counted = self.server.service.messages.count(exchange.raw, exchange.betas)
                self._record(exchange, 200, None)
                self._send_json(exchange, counted)
            else:
                self._answer(exchange)
        except ApiError as error:
            self._refuse(exchange, error)

    def do_GET(self) -> None:
        """Answer with the models, or with an error: there is nothing else to fetch."""
        exchange = Exchange(self._api())
        try:
            self._check_path((MODELS,))
            exchange.api.check_headers(self._headers())
            self._record(exchange, 200, None)
            self._send_json(exchange, self.server.service.catalog.listing())
        except ApiError as error:
            self._refuse(exchange, error)

    def version_string(self) -> str:
        """Return the value of the `server` header."""
        return "efrit-budget-demo"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Print nothing; the record has every request."""

    # Reading

    def _path(self) -> str:
        """Return the path without a query such as `?beta=true`."""
        return self.path.partition("?")[0]

    def _check_path(self, served: tuple[str, ...]) -> None:
        """Raise unless the path is served for the method of the request."""
        if self._path() in (*PATHS, MODELS) and self._path() not in served:
            raise ApiError("Method Not Allowed", status=405)
        if self._path() not in served:
            raise ApiError("Not found", status=404)

    def _api(self) -> Api:
        """Return the API that a request belongs to, by its path or by the header of one API."""
        service, path = self.server.service, self._path()
        is_chat = path == CHAT or (path == MODELS and "anthropic-version" not in self.headers)
        return service.chat if is_chat else service.messages

    def _headers(self) -> dict[str, str]:
        """Return the headers by lower-case name; join the values of a repeated header."""
        names = {name.lower() for name in self.headers}
        return {name: ",".join(self.headers.get_all(name) or []) for name in names}

    def _body(self) -> bytes:
        length = self.headers.get("content-length", "")
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            return self._chunks()
        if not length.isdecimal():
            self.close_connection = True
            raise ApiError("a Content-Length is needed", status=400)
        self._check_size(int(length))
        return self.rfile.read(int(length))

    def _check_size(self, size: int) -> None:
        if size > MOST_BYTES:
            self.close_connection = True
            raise ApiError("Request exceeds the maximum size", status=413)

    def _chunks(self) -> bytes:
        """Return a body that is sent in chunks."""
        body = b""
        while size := self._chunk_size():
            body += self.rfile.read(size)
            self.rfile.readline(8)
            self._check_size(len(body))
        while self.rfile.readline(1024).strip():
            pass
        return body

    def _chunk_size(self) -> int:
        line = self.rfile.readline(64).partition(b";")[0].strip()
        if not CHUNK_SIZE.fullmatch(line):
            self.close_connection = True
            raise ApiError("a chunk's size is no number")
        return int(line, 16)

    # Answering

    def _answer(self, exchange: Exchange) -> None:
        api = exchange.api
        reply = self.server.service.answer(api, exchange.raw, exchange.betas)
        reply.request_id = exchange.request_id
        time.sleep(reply.entry.wait_ms / 1000)
        if json.loads(exchange.raw).get("stream"):
            try:
                self._stream(exchange, reply)
            except ConnectionError:
                self._record(exchange, 200, reply, "the client hung up")
                raise
            return
        if error := unstreamable(reply.entry, api.error_messages):
            raise error
        time.sleep(len(reply.blocks) * reply.entry.delay_ms / 1000)
        self._record(exchange, 200, reply)
        self._send_json(exchange, api.body(reply))

    def _stream(self, exchange: Exchange, reply: Reply) -> None:
        self.send_response(200)
        self._send_headers(exchange, {"content-type": "text/event-stream; charset=utf-8"})
        self.send_header("cache-control", "no-cache")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        waiting: Event | None = None
        for event in exchange.api.events(reply):
            if waiting is not None:
                self._chunk(waiting.data)
            waiting = event
            if event.is_piece:
                time.sleep(reply.entry.delay_ms / 1000)
                exchange.first = exchange.first or time.time()
                self._chunk(event.data)
                waiting = None
            elif event.is_last:
                break
        self._record(exchange, 200, reply)
        self._chunk(waiting.data if waiting else b"")
        if waiting is not None and waiting.drops:
            self.close_connection = True
            return
        self.wfile.write(b"0\r\n\r\n")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def _refuse(self, exchange: Exchange, error: ApiError) -> None:
        error.request_id = exchange.request_id
        body = error.verbatim
        if body is None:
            body = json.dumps(exchange.api.error_body(error), ensure_ascii=False)
        self._record(exchange, error.status, None, error=error.message)
        self._send(exchange, error.status, body, error.headers)

    def _send_json(self, exchange: Exchange, body: JsonObject) -> None:
        self._send(exchange, 200, json.dumps(body, ensure_ascii=False))

    def _send(
        self,
        exchange: Exchange,
        status: int,
        body: str,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        data = body.encode()
        self.send_response(status)
        self._send_headers(exchange, {"content-type": "application/json", **(headers or {})})
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _send_headers(self, exchange: Exchange, headers: Mapping[str, str]) -> None:
        self.send_header(exchange.api.id_header, exchange.request_id)
        for name, value in headers.items():
            self.send_header(name, value)

    def _record(
        self, exchange: Exchange, status: int, reply: Reply | None, error: str | None = None
    ) -> None:
        """Log the request once, before the last bytes of the reply are sent."""
        if exchange.is_recorded:
            return
        exchange.is_recorded = True
        try:
            body = json.loads(exchange.raw)
        except ValueError:
            body = exchange.raw.decode("utf-8", "replace")
        self.server.recorder.write(
            {
                "status": status,
                "path": self.path,
                "betas": sorted(exchange.betas),
                "body": body,
                "usage": None if reply is None else exchange.api.usage(reply),
                "stop_reason": None if reply is None else reply.stop_reason,
                "error": error,
                "times": {
                    "received": exchange.received,
                    "first": exchange.first,
                    "ended": time.time(),
                },
            }
        )
