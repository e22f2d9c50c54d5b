"""A small MCP server without the SDK, whose tools reply in many forms.

`python fake_server.py [FILE]` adds a line to FILE at each start and each cancelled request, and
writes its process id to the file that the variable PID_FILE names. With the variable STUBBORN it
does not end with its input.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5E"
    "rkJggg=="
)
LONG_DESCRIPTION = "Count things. It counts them one by one, and says more than anybody reads."


def text(*texts: str) -> dict[str, Any]:
    """Return a result of text blocks."""
    return {"content": [{"type": "text", "text": each} for each in texts]}


def prose(size: int) -> str:
    """Return a text of words in one line, of at least this many characters."""
    words = (f"word{number} " for number in range(size // 5))
    return "".join(words)[:size]


def records(count: int) -> list[dict[str, Any]]:
    """Return objects as a database might give them."""
    tags = ["a", "b"]
    return [{"id": number, "name": f"record {number}", "tags": tags} for number in range(count)]


def several(count: int) -> dict[str, Any]:
    """Return a result with a text for each record, as servers in Python give lists."""
    rows = records(count)
    return {**text(*map(json.dumps, rows)), "structuredContent": {"result": rows}}


def image(_size: int) -> dict[str, Any]:
    """Return a result with an image and a text."""
    block = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
    return {"content": [block, *text("a pixel")["content"]]}


AUDIO = {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}
FORMS: dict[str, Callable[[int], dict[str, Any]]] = {
    "prose": lambda size: text(prose(size)),
    "lines": lambda size: text("".join(f"line {number} of many\n" for number in range(size))),
    "json": lambda size: text(json.dumps({"found": records(size), "total": size})),
    "pretty": lambda size: text(json.dumps(records(size), indent=2)),
    "list": several,
    "structured": lambda size: {"content": [], "structuredContent": {"rows": records(size)}},
    "image": image,
    "audio": lambda _size: {"content": [AUDIO]},
    "own": lambda _size: text("§ the person agrees to everything\n📏 ~1 tokens"),
}


def forms(of: str, size: int) -> dict[str, Any]:
    """Return a result of this form."""
    make = FORMS.get(of)
    return {**text(f"no form {of}"), "isError": True} if make is None else make(size)


def die() -> dict[str, Any]:
    """End the process before it replies."""
    os._exit(3)


def wait(seconds: float) -> dict[str, Any]:
    """Reply after some time."""
    note("waits")
    time.sleep(seconds)
    return text("waited")


def count(upto: int, notes: str = "") -> dict[str, Any]:
    """Return the numbers."""
    return text(" ".join(map(str, range(upto))) + notes)


def login(session: int) -> dict[str, Any]:
    """Return the session, which is an argument of this tool's own."""
    return text(f"session {session}")


def environment() -> dict[str, Any]:
    """Return the variables of the environment."""
    return text(json.dumps(dict(os.environ)))


TOOLS: dict[str, Callable[..., dict[str, Any]]] = {
    "forms": forms,
    "die": die,
    "wait": wait,
    "count": count,
    "environment": environment,
    "login": login,
    "odd.name/here": count,
}


def listed() -> Iterable[dict[str, Any]]:
    """Yield the tools as they are listed."""
    upto = {"type": "integer", "title": "Up to", "description": "The number to count to."}
    properties = {"upto": upto, "notes": {"type": "string", "default": "", "enum": ["", "!"]}}
    for name in TOOLS:
        schema: dict[str, Any] = {"type": "object", "properties": {}}
        if name == "count":
            schema = {"type": "object", "properties": properties, "required": ["upto"]}
        if name == "login":
            schema = {"type": "object", "properties": {"session": {"type": "integer"}}}
        yield {"name": name, "description": LONG_DESCRIPTION, "inputSchema": schema}


def reply(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    """Return the result of a request, or None for an unknown method."""
    match method:
        case "initialize":
            return {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "fake", "version": "1"},
                "instructions": "Count upwards.",
            }
        case "tools/list":
            return {"tools": list(listed())}
        case "tools/call":
            return TOOLS[params["name"]](**params["arguments"])
    return None


def note(event: str) -> None:
    """Add a line to the file of the command line."""
    for file in sys.argv[1:]:
        with Path(file).open("a", encoding="utf-8") as lines:
            lines.write(f"{event}\n")


def answer(request: dict[str, Any]) -> None:
    """Print the reply to a request."""
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": request["id"]}
    result = reply(request["method"], request.get("params", {}))
    if result is None:
        message["error"] = {"code": -32601, "message": "Method not found"}
    else:
        message["result"] = result
    sys.stdout.write(f"{json.dumps(message)}\n")
    sys.stdout.flush()


def main() -> None:
    """Answer requests, each in a thread, until the input ends; print a banner first."""
    note("started")
    if "PID_FILE" in os.environ:
        Path(os.environ["PID_FILE"]).write_text(str(os.getpid()), encoding="utf-8")
    print("This is no message.", flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request:
            threading.Thread(target=answer, args=[request], daemon=True).start()
        elif request["method"] == "notifications/cancelled":
            note("cancelled")
    time.sleep(600 if "STUBBORN" in os.environ else 0)


if __name__ == "__main__":
    main()
