"""A language server for the tests of formatting: it removes blanks at the ends of lines.

It formats open documents only. Columns count UTF-16, as by default. With the argument `cannot`,
formatting fails.
"""

from __future__ import annotations

import json
import sys
from typing import Any


def units(text: str) -> int:
    """Count the UTF-16 units of a text."""
    return len(text.encode("utf-16-le")) // 2


def edits(text: str) -> list[dict[str, Any]]:
    """Return an edit for each line that ends in blanks, and one that adds a last line."""
    found = []
    lines = text.split("\n")
    for number, line in enumerate(lines):
        bare = line.rstrip(" \t")
        if bare != line:
            start = {"line": number, "character": units(bare)}
            end = {"line": number, "character": units(line)}
            found.append({"range": {"start": start, "end": end}, "newText": ""})
    last = {"line": len(lines) - 1, "character": units(lines[-1])}
    found.append({"range": {"start": last, "end": last}, "newText": "one\r\n"})
    found.append({"range": {"start": last, "end": last}, "newText": "two\r\n"})
    return found


def receive() -> dict[str, Any]:
    """Read the next message."""
    length = 0
    while line := sys.stdin.buffer.readline().strip():
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    if not length:
        sys.exit()
    message: dict[str, Any] = json.loads(sys.stdin.buffer.read(length))
    return message


def send(message: dict[str, Any]) -> None:
    """Write a message."""
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
    sys.stdout.buffer.flush()


def main() -> None:
    """Answer until the input ends."""
    texts: dict[str, str] = {}
    capabilities = {"textDocumentSync": 1, "documentFormattingProvider": True}
    while True:
        message = receive()
        method, params = message.get("method"), message.get("params") or {}
        document = params.get("textDocument", {})
        if method == "textDocument/didOpen":
            texts[document["uri"]] = document["text"]
        elif method == "textDocument/didChange":
            texts[document["uri"]] = params["contentChanges"][-1]["text"]
        if "id" not in message:
            continue
        if method == "textDocument/formatting" and "cannot" in sys.argv:
            send({"id": message["id"], "error": {"code": -32000, "message": "not today"}})
        elif method == "textDocument/formatting":
            send({"id": message["id"], "result": edits(texts[document["uri"]])})
        elif method == "initialize":
            send({"id": message["id"], "result": {"capabilities": capabilities}})
        else:
            send({"id": message["id"], "result": None})


if __name__ == "__main__":
    main()
