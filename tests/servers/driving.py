"""A batch Emacs whose session works with a server."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tests.demo.running import MODEL
from tests.emacs.batch import batch

Api = Literal["messages", "chat"]
PATHS: Mapping[Api, str] = {"messages": "/v1/messages", "chat": "/v1/chat/completions"}
FEATURES: Mapping[Api, str] = {
    "messages": "(cache thinking effort binding diagnostics)",
    "chat": "(usage images reasoning-back)",
}
"""The features of the scripted model, as Emacs's option has them."""
SECONDS = 660
"""The seconds without a line after which Emacs counts as hanging."""


@dataclass(frozen=True)
class Server:
    """A running server, and what Emacs has to know of it."""

    url: str
    api: Api
    model: str = MODEL
    key: str = "sk-test"
    features: str | None = None
    """The text of Emacs's option; None for all features of the scripted model."""

    def options(self) -> dict[str, str]:
        """Return Emacs's options for the server, as the text of Lisp values."""
        return {
            "efrit-claude-url": json.dumps(self.url + PATHS[self.api]),
            "efrit-endpoint-api": self.api,
            "efrit-claude-model": json.dumps(self.model),
            "efrit-claude-features": self.features or FEATURES[self.api],
            "efrit-claude-headers": f'(("Authorization" . {json.dumps(f"Bearer {self.key}")}))',
        }


@dataclass(frozen=True)
class Exchange:
    """What happened from a word of the person's until the session waited again."""

    begun: list[dict[str, Any]]
    uses: list[dict[str, Any]]
    rest: dict[str, Any]


@dataclass
class Emacs:
    """A session, driven line by line."""

    process: subprocess.Popen[str]
    requests: Path
    lines: queue.Queue[str] = field(default_factory=queue.Queue)
    last: str = "its start"

    def read(self) -> None:
        """Put each line that Emacs writes into `lines`, and an empty one behind the last."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put("")

    def begin(self, root: Path, options: Mapping[str, str]) -> None:
        """Begin a session in a project, with options of Emacs."""
        self._tell(do="begin", root=str(root), requests=str(self.requests), options=dict(options))

    def say(self, text: str) -> Exchange:
        """Send a message, and return what came of it."""
        self._tell(do="say", text=text)
        return self._until_rest()

    def go_on(self) -> Exchange:
        """Have the session go on, and return what came of it."""
        self._tell(do="go")
        return self._until_rest()

    def stored(self) -> list[dict[str, Any]]:
        """Return what Emacs says of each stored result."""
        self._tell(do="stored")
        word, value = self._next()
        assert word == "STORED"
        results: list[dict[str, Any]] = value
        return results

    def look(self, address: str, model: str, options: Mapping[str, str]) -> dict[str, Any]:
        """Have it find out what a server can do with a model, and return that."""
        self._tell(do="look", address=address, model=model, options=dict(options))
        word, found = self._next()
        assert word == "FOUND"
        return dict(found)

    def sent(self) -> list[dict[str, Any]]:
        """Return the requests that were sent, in order."""
        lines = self.requests.read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]

    def _tell(self, **command: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()

    def _until_rest(self) -> Exchange:
        heard: dict[str, list[dict[str, Any]]] = {"BEGUN": [], "USE": []}
        while True:
            word, value = self._next()
            if word == "REST":
                uses = sorted(heard["USE"], key=lambda use: (use["turn"], use["place"]))
                return Exchange(heard["BEGUN"], uses, value)
            heard[word].append(value)

    def _next(self) -> tuple[str, Any]:
        try:
            line = self.lines.get(timeout=SECONDS)
        except queue.Empty:
            raise AssertionError(f"Emacs hangs after {self.last}") from None
        assert line, f"Emacs ended after {self.last}"
        self.last = line[:1000]
        word, _, value = line.partition(" ")
        assert word != "ERROR", value
        return word, json.loads(value)


@contextmanager
def emacs(folder: Path) -> Iterator[Emacs]:
    """Run an Emacs that has a folder for its home and its requests."""
    home = folder / "person"
    home.mkdir(parents=True)
    also = {"TMPDIR": str(folder)}
    process = batch("server-driver.el", home, also=also, stdin=subprocess.PIPE, errors="replace")
    with process:
        running = Emacs(process, folder / "requests.jsonl")
        threading.Thread(target=running.read, daemon=True).start()
        try:
            yield running
        finally:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()
