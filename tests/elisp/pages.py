"""A site on loopback for the tests of the tools that read the web: `python pages.py`.

It prints its port, keeps each request's headers for `/headers`, and ends with its standard input.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

ARTICLE = """<!doctype html><html><head><title>Über  Katzen</title>
<script>document.write("scripted")</script><style>p { color: red }</style></head>
<body><nav><a href="/other?a=1&amp;b=2">Other</a> <a href="#top">Top</a></nav>
<h1>Cats</h1><p>Größe is <b>size</b>.</p><ul><li>one<li>two</ul>
<img src="/image.png" alt="a cat"><svg><text>drawn</text></svg>
<a href="//duckduckgo.com/l/?uddg=https%3A%2F%2Fexample.org%2Fa%3Fb%3D1&amp;rut=x">Found</a>
</body></html>"""
LATIN = "<html><head><meta charset='iso-8859-1'></head><body>Grüße</body></html>"


class Pages(BaseHTTPRequestHandler):
    """Answers by path."""

    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        """Send the page of the path."""
        Pages.asked.append(self.path)
        path, _, query = self.path.partition("?")
        answer = getattr(self, f"page_{path.strip('/').replace('-', '_')}", None)
        if answer is None:
            self.give("<p>Nothing is here.</p>", "text/html", status=404)
        else:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                answer(query)

    def page_article(self, _: str) -> None:
        """Send HTML in UTF-8."""
        self.give(ARTICLE, "text/html; charset=utf-8")

    def page_latin(self, _: str) -> None:
        """Send HTML in Latin-1, which only the page says."""
        self.give(LATIN.encode("latin-1"), "text/html")

    def page_untold(self, _: str) -> None:
        """Send text in Latin-1 without naming the encoding."""
        self.give("Grüße\r\nalle".encode("latin-1"), "text/plain")

    def page_zipped(self, _: str) -> None:
        """Send compressed JSON."""
        body = gzip.compress(json.dumps({"größe": 3}, ensure_ascii=False).encode())
        self.give(body, "application/json", {"Content-Encoding": "gzip"})

    def page_binary(self, _: str) -> None:
        """Send an image."""
        self.give(b"\x89PNG\r\n\x1a\n\0\0", "image/png")

    def page_headers(self, _: str) -> None:
        """Answer with the request's headers and all paths requested so far."""
        said = {"headers": dict(self.headers), "asked": Pages.asked}
        self.give(json.dumps(said), "application/json", {"Set-Cookie": "seen=1; Path=/"})

    def page_leads(self, query: str) -> None:
        """Redirect to the query."""
        self.give("", "text/plain", {"Location": query}, status=302)

    def page_loop(self, _: str) -> None:
        """Redirect to itself."""
        self.give("", "text/plain", {"Location": "/loop"}, status=301)

    def page_private(self, _: str) -> None:
        """Ask for a password."""
        asked = {"WWW-Authenticate": 'Basic realm="x"'}
        self.give("Who are you?", "text/plain", asked, status=401)

    def page_endless(self, _: str) -> None:
        """Send text without end."""
        self.begin("text/plain", 200, {})
        while True:
            self.wfile.write(b"and so on\n" * 1000)

    def page_slow(self, _: str) -> None:
        """Send the beginning of a text, and nothing more."""
        self.begin("text/plain", 200, {})
        self.wfile.write(b"begun\n")
        self.wfile.flush()
        threading.Event().wait()

    def page_mute(self, _: str) -> None:
        """Send nothing at all."""
        threading.Event().wait()

    def page_search(self, query: str) -> None:
        """Answer with the results of a search."""
        self.give(f"<p>For {query}:</p>{ARTICLE}", "text/html; charset=utf-8")

    def give(
        self,
        body: str | bytes,
        kind: str,
        headers: dict[str, str] | None = None,
        status: int = 200,
    ) -> None:
        """Answer with a body."""
        data = body.encode() if isinstance(body, str) else body
        self.begin(kind, status, {"Content-Length": str(len(data)), **(headers or {})})
        self.wfile.write(data)

    def begin(self, kind: str, status: int, headers: dict[str, str]) -> None:
        """Write the head of an answer."""
        self.send_response(status)
        for name, value in {"Content-Type": kind, **headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Write no log."""


def main() -> None:
    """Serve until standard input ends."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
