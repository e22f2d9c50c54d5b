"""A language server for the tests: it removes blanks at the ends of lines, and renames words.

It formats open documents only, and renames in all files beside the document. Columns count UTF-16,
as by default. With the argument `cannot`, formatting fails; with `moves`, a rename moves the file.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote


def units(text: str) -> int:
    """Count the UTF-16 units of a text."""
    return len(text.encode("utf-16-le")) // 2


def line_edits(text: str) -> list[dict[str, Any]]:
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


def renamed(texts: dict[str, str], params: dict[str, Any], *, moves: bool) -> dict[str, Any]:
    """Return the edits of all files beside the document that rename the word at a position."""
    uri, position = params["textDocument"]["uri"], params["position"]
    line = texts[uri].split("\n")[position["line"]]
    before = line.encode("utf-16-le")[: 2 * position["character"]].decode("utf-16-le")
    found = re.match(r"\w+", line[len(before) :])
    word = re.compile(rf"\b{found[0] if found else 'nothing'}\b")
    changes: list[dict[str, Any]] = [{"kind": "rename"}] if moves else []
    for file in sorted(Path(unquote(uri.removeprefix("file://"))).parent.glob("*.txt")):
        its = uri if file.name == Path(unquote(uri)).name else f"file://{quote(str(file))}"
        text = texts.get(its) or file.read_text(encoding="utf-8")
        edits = [
            {"range": words_range(number, one, match), "newText": params["newName"]}
            for number, one in enumerate(text.split("\n"))
            for match in word.finditer(one)
        ]
        changes.append({"textDocument": {"uri": its, "version": None}, "edits": edits})
    return {"documentChanges": changes}


def words_range(number: int, line: str, match: re.Match[str]) -> dict[str, Any]:
    """Return the range of a match in a line."""
    start, end = units(line[: match.start()]), units(line[: match.end()])
    return {
        "start": {"line": number, "character": start},
        "end": {"line": number, "character": end},
    }


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
    capabilities |= {"renameProvider": True}
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
            send({"id": message["id"], "result": line_edits(texts[document["uri"]])})
        elif method == "textDocument/rename":
            edits = renamed(texts, params, moves="moves" in sys.argv)
            send({"id": message["id"], "result": edits})
        elif method == "initialize":
            send({"id": message["id"], "result": {"capabilities": capabilities}})
        else:
            send({"id": message["id"], "result": None})


if __name__ == "__main__":
    main()
