"""The client's end of a connection to a sidecar, for tests: it writes, and a thread reads."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO, Any

TIMEOUT = 120.0
"""The limit against hangs, in seconds; everything that works is far faster."""


class RpcError(Exception):
    """An error reply."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(json.dumps(error))
        self.error = error
        self.code: int = error["code"]
        self.message: str = error["message"]
        self.data: dict[str, Any] = error.get("data", {})

    @property
    def told(self) -> str:
        """The text for the reader: the detail if the message is one of JSON-RPC's own."""
        return str(self.data.get("detail", self.message))


@dataclass(frozen=True)
class Received:
    """A message from the sidecar, and the framing it came in."""

    value: Any
    framing: str


def framed(value: Any, framing: str = "header") -> bytes:
    """Return a message's bytes; bytes are taken as its JSON text."""
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    return (
        body + b"\n" if framing == "line" else b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
    )


def request(method: str, request_id: Any = None, /, **params: Any) -> dict[str, Any]:
    """Return a request, or a notification if there is no id."""
    member = {"jsonrpc": "2.0", "method": method, "params": params}
    return member if request_id is None else {**member, "id": request_id}


class Connection:
    """Sends requests to a sidecar and waits for its messages.

    Everything on stdout must be well-formed messages in one of the two framings; the first stray
    byte makes every later wait, and the end of the context, fail.
    """

    def __init__(self, stdin: IO[bytes], stdout: IO[bytes], framing: str = "header") -> None:
        self.stdin = stdin
        self.stdout = stdout
        self.framing = framing
        self.received: list[Received] = []
        self._ids = itertools.count(1)
        self._seen: set[int] = set()
        self._violation: str | None = None
        self._ended = False
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)

    # Sending

    def send_bytes(self, data: bytes) -> None:
        """Send bytes as they are."""
        self.stdin.write(data)
        self.stdin.flush()

    def send(self, value: Any, framing: str | None = None) -> None:
        """Send one message: a JSON value, or the bytes of a JSON text."""
        self.send_bytes(framed(value, framing or self.framing))

    def begin(self, method: str, /, **params: Any) -> int:
        """Send a request and return its id; `result` waits for its reply."""
        request_id = next(self._ids)
        self.send(request(method, request_id, **params))
        return request_id

    def notify(self, method: str, /, **params: Any) -> None:
        """Send a notification."""
        self.send(request(method, **params))

    def request(self, method: str, /, **params: Any) -> Any:
        """Send a request and return its result, or raise `RpcError`."""
        return self.result(self.begin(method, **params))

    def call_tool(
        self, session: str, name: str, use: str, arguments: dict[str, Any], **beside: Any
    ) -> dict[str, Any]:
        """Call a tool in a session and return the envelope; `beside` are further parameters."""
        envelope: dict[str, Any] = self.request(
            "tools/call",
            session_id=session,
            name=name,
            arguments=arguments,
            tool_use_id=use,
            **beside,
        )
        return envelope

    # Receiving

    def reply(self, request_id: Any, timeout: float = TIMEOUT) -> dict[str, Any]:
        """Return the whole reply to a request; a second call for the same id waits again."""

        def is_it(value: Any) -> bool:
            return isinstance(value, dict) and "method" not in value and value["id"] == request_id

        found: dict[str, Any] = self.wait_for(is_it, timeout).value
        return found

    def result(self, request_id: Any, timeout: float = TIMEOUT) -> Any:
        """Return the result of a request, or raise `RpcError`."""
        reply = self.reply(request_id, timeout)
        if "error" in reply:
            raise RpcError(reply["error"])
        return reply["result"]

    def next_message(self, timeout: float = TIMEOUT) -> Received:
        """Return the next message that nobody has waited for yet, leaving out progress."""
        return self.wait_for(lambda value: not _is_progress(value), timeout)

    @property
    def replies(self) -> list[Any]:
        """Return the messages received so far, leaving out progress, which comes at any time."""
        with self._changed:
            values = [message.value for message in self.received]
        return [value for value in values if not _is_progress(value)]

    def notifications(self, method: str) -> list[dict[str, Any]]:
        """Return the params of all notifications with this method received so far."""
        with self._changed:
            values = [message.value for message in self.received]
        return [v["params"] for v in values if isinstance(v, dict) and v.get("method") == method]

    def wait_for(self, wanted: Callable[[Any], bool], timeout: float = TIMEOUT) -> Received:
        """Return the first message that `wanted` accepts and that was not returned before."""
        deadline = time.monotonic() + timeout
        with self._changed:
            while True:
                for index, message in enumerate(self.received):
                    if index not in self._seen and wanted(message.value):
                        self._seen.add(index)
                        return message
                left = deadline - time.monotonic()
                if self._violation or self._ended or left <= 0:
                    raise AssertionError(self._report())
                self._changed.wait(left)

    def settled(self) -> list[Any]:
        """Send one more request, and return the replies that came before its own."""
        marker = f"marker-{next(self._ids)}"
        self.send(request("ping", marker))
        self.reply(marker)
        return [v for v in self.replies if not (isinstance(v, dict) and v.get("id") == marker)]

    # Ending

    def close_stdin(self) -> None:
        """End the sidecar's input."""
        try:
            self.stdin.close()
        except BrokenPipeError:
            return

    def wait_until_read(self, timeout: float = TIMEOUT) -> None:
        """Wait until everything that the sidecar wrote has been read, where it is read."""
        if self._reader.ident is not None:
            self._reader.join(timeout)

    def check(self) -> None:
        """Fail where the sidecar wrote anything but messages."""
        assert self._violation is None, self._violation

    def errors(self) -> str:
        """Return what it wrote to stderr so far, where that is known."""
        return ""

    # Reading

    def start_reading(self) -> None:
        """Read what the sidecar writes, from now on."""
        self._reader.start()

    def _read(self) -> None:
        try:
            while (line := self.stdout.readline()) != b"":
                self._take(*_one_message(line, self.stdout))
        except (ValueError, AssertionError) as error:
            self._violation = f"not a message: {error}"
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _take(self, body: bytes, framing: str) -> None:
        value = json.loads(body.decode(), parse_constant=_refuse)
        assert isinstance(value, dict | list), body[:200]
        with self._changed:
            self.received.append(Received(value, framing))
            self._changed.notify_all()

    def _report(self) -> str:
        waited = [message.value for i, message in enumerate(self.received) if i not in self._seen]
        state = "ended" if self._ended else "running"
        return (
            f"no such message; {self._violation or 'no violation'}; {state}; "
            f"unseen: {str(waited)[:2000]}; stderr: {self.errors()[-4000:]}"
        )


def _is_progress(value: Any) -> bool:
    return isinstance(value, dict) and value.get("method") == "$/progress"


def _one_message(line: bytes, output: IO[bytes]) -> tuple[bytes, str]:
    if not line.startswith(b"Content-Length: "):
        assert line.endswith(b"\n"), f"a cut message: {line[:200]!r}"
        return line, "line"
    length = int(line.removeprefix(b"Content-Length: ").removesuffix(b"\r\n"))
    assert output.readline() == b"\r\n", "a header without its empty line"
    body = output.read(length)
    assert len(body) == length, f"{len(body)} bytes of {length}"
    return body, "header"


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
