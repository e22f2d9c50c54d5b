"""An Emacs in a terminal, driven by keys and read from the screen."""

from __future__ import annotations

import itertools
import json
import os
import queue
import shlex
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.connection import TIMEOUT
from tests.emacs.batch import NO_TRAMPOLINES, ROOT
from tests.sidecar import forked

Size = tuple[int, int]
SIZE: Size = (110, 44)
"""The size of a terminal in columns and lines."""
LONGEST_PAUSE = 1.0
"""The seconds until the screen is looked at again although nothing was written to it."""


def settings(url: str, window: int | None = None) -> str:
    """Return the Lisp with which an Emacs talks to the model at a URL, and to forked sidecars.

    `window` are the tokens that the model can hold, if the sidecar is to be told.
    """
    command = " ".join(json.dumps(word) for word in forked())
    return f"""(progn {NO_TRAMPOLINES} (setq efrit-claude-url "{url}/v1/messages"
  efrit-sidecar-command '({command})
  efrit-claude-headers '(("x-api-key" . "sk-test"))
  efrit-claude-features '(cache thinking effort binding diagnostics)
  efrit-endpoint-window {window or "nil"}
  inhibit-startup-screen t))"""


class Terminal:
    """A terminal that runs a program, seen and typed into through one tmux client."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._changed = threading.Event()
        self._answers: queue.Queue[str] = queue.Queue()
        command = ["tmux", "-L", name, "-u", "-C", "attach-session"]
        pipe = subprocess.PIPE
        self._client = subprocess.Popen(command, stdin=pipe, stdout=pipe, encoding="utf-8")
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._answer()

    def press(self, *keys: str) -> None:
        """Press keys, as tmux names them."""
        self._tmux("send-keys", *keys)

    def type(self, text: str) -> None:
        """Type a text."""
        self._tmux("send-keys", "-l", text)

    def screen(self) -> str:
        """Return what stands on the screen; a newer tmux keeps the tabs that Emacs moves by."""
        return self._tmux("capture-pane", "-p").expandtabs()

    def see(self, *texts: str) -> str:
        """Wait until all the texts stand on the screen, and return what stands there."""
        return self._wait(self.screen, lambda seen: all(text in seen for text in texts))

    def show(self, fits: Callable[[str], bool]) -> str:
        """Wait until what stands on the screen fits, and return it."""
        return self._wait(self.screen, fits)

    def gone(self, text: str) -> None:
        """Wait until a text stands on the screen no more."""
        self._wait(self.screen, lambda seen: text not in seen)

    def rest_on(self, text: str) -> None:
        """Wait until the cursor stands on a line with the text."""
        self._wait(self.line, lambda line: text in line)

    def line(self) -> str:
        """Return the line that the cursor is on."""
        row = int(self._tmux("display-message", "-p", "#{cursor_y}"))
        return (self.screen().split("\n") + [""] * (row + 1))[row]

    def note_output(self, output: str) -> None:
        """Do nothing with what the program wrote; a terminal that is recorded keeps it."""

    def kill(self) -> None:
        """Kill the program without a question, as closing its window does."""
        subprocess.run(
            ["tmux", "-L", self.name, "kill-server"], check=False, stderr=subprocess.DEVNULL
        )
        self._reader.join(TIMEOUT)
        with self._client:
            pass

    def _wait(self, look: Callable[[], str], fits: Callable[[str], bool]) -> str:
        """Look at the screen after each change until what it shows fits, and return that."""
        deadline = time.monotonic() + TIMEOUT
        while True:
            self._changed.clear()
            if fits(seen := look()):
                return seen
            assert time.monotonic() < deadline, f"not on the screen:\n{self.screen()}"
            self._changed.wait(LONGEST_PAUSE)

    def _tmux(self, *words: str) -> str:
        assert self._client.stdin is not None
        self._client.stdin.write(shlex.join(words) + "\n")
        self._client.stdin.flush()
        return self._answer()

    def _answer(self) -> str:
        return self._answers.get(timeout=TIMEOUT)

    def _read(self) -> None:
        """Read the answers to commands, and notice when the program wrote something."""
        assert self._client.stdout is not None
        lines = iter(self._client.stdout.readline, "")
        for line in lines:
            if line.startswith("%begin "):
                self._answers.put(_answer(line, lines))
            elif line.startswith("%output "):
                self.note_output(line.rstrip("\n").split(" ", 2)[2])
                self._changed.set()


def _answer(first: str, lines: Iterator[str]) -> str:
    """Return the lines of the answer that begins with the first line."""
    number = first.removeprefix("%begin ")
    ends = (f"%end {number}", f"%error {number}")
    return "".join(itertools.takewhile(lambda line: line not in ends, lines))


@contextmanager
def emacs(folder: Path, url: str, size: Size = SIZE) -> Iterator[Terminal]:
    """Yield an Emacs in a terminal on a folder, which talks to the model at a URL."""
    name = f"efrit-test-{uuid.uuid4().hex[:12]}"
    command = [os.environ.get("EMACS", "emacs"), "-nw", "-Q"]
    command += ["-L", str(ROOT / "elisp"), "-l", "efrit", "--eval", settings(url)]
    start = ["tmux", "-L", name, "-f", "/dev/null", "-u", "new-session", "-d"]
    start += ["-x", str(size[0]), "-y", str(size[1])]
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "TERM": "xterm-256color", "TMUX": ""}
    subprocess.run([*start, *command], check=True, cwd=folder, env=environment)
    terminal = Terminal(name)
    try:
        terminal.see("*scratch*")
        yield terminal
    finally:
        terminal.kill()
